package main_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"goodput_exporter/collector/live"
)

// openTerminal returns both ends of a pseudo-terminal of a size.
func openTerminal(t *testing.T, rows, columns uint16) (ours, theirs *os.File) {
	t.Helper()
	ours, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip("no terminals here:", err)
	}
	t.Cleanup(func() { _ = ours.Close() })
	fd := int(ours.Fd())
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: rows, Col: columns}); err != nil {
		t.Fatal(err)
	}
	theirs, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	return ours, theirs
}

// A terminal that is watched is drawn anew, as far as it has room, in colours unless these are unwanted.
func TestStatusWatchDrawsATerminal(t *testing.T) {
	const clearing = "\x1b[H\x1b[2J"
	d := newDaemon(t, 0, live.OK, live.Burning, live.NoData, live.Paused, live.Down)
	for _, tc := range []struct {
		name, env string
		rows      uint16
		want      []string
		not       string
	}{
		{"large", "TERM=xterm", 40, []string{"\x1b[1;31mdown\x1b[0m ", "\x1b[31mburning\x1b[0m ", "\x1b[32mok\x1b[0m "}, "more lines"},
		{"low", "TERM=xterm", 8, []string{"1 down", "\x1b[1;31mdown\x1b[0m ", "and 8 more lines"}, "paused by"},
		{"without colours", "NO_COLOR=1", 40, []string{"\ndown "}, "\x1b[32m"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			ours, theirs := openTerminal(t, tc.rows, 80)
			cmd := exec.CommandContext(t.Context(), binary, "status", "--watch", "--url="+d.URL)
			cmd.Env, cmd.Stdout = []string{tc.env}, theirs
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			_ = theirs.Close()
			drawn, block := "", make([]byte, 64<<10)
			for strings.Count(drawn, clearing) < 2 { // the first drawing is whole
				n, err := ours.Read(block)
				if err != nil {
					t.Fatalf("%v after %q", err, drawn)
				}
				drawn += strings.ReplaceAll(string(block[:n]), "\r\n", "\n")
			}
			if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			if _ = cmd.Wait(); cmd.ProcessState.ExitCode() != 1 {
				t.Errorf("exit code %d, want 1", cmd.ProcessState.ExitCode())
			}
			first := strings.Split(drawn, clearing)[1]
			for _, want := range tc.want {
				if !strings.Contains(first, want) {
					t.Errorf("%q is not in %q", want, first)
				}
			}
			if strings.Contains(first, tc.not) || strings.Count(first, "\n") > int(tc.rows)-1 {
				t.Errorf("%d lines, and no %q wanted: %q", strings.Count(first, "\n"), tc.not, first)
			}
		})
	}
}
