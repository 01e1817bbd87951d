package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

const maxExposure = 1.2 // of 10; half of what is left is the network, which it needs

// units copies the units to a directory, with the daemon where it was built.
func units(t *testing.T) (service, socket string) {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"goodput_exporter.service", "goodput_exporter.socket"} {
		text := strings.ReplaceAll(read(t, "deploy/systemd/"+name), "/usr/local/bin/", imageContent(t)+"/bin/")
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir + "/goodput_exporter.service", dir + "/goodput_exporter.socket"
}

func TestSystemdUnits(t *testing.T) {
	analyze := tool(t, "SYSTEMD_ANALYZE", "systemd-analyze")
	service, socket := units(t)
	if out := output(t, analyze, "verify", service, socket); out != "" {
		t.Errorf("systemd-analyze verify: %s", out)
	}
	out := output(t, analyze, "security", "--offline=true", "--no-pager", service)
	level := regexp.MustCompile(`Overall exposure level for \S+: ([\d.]+)`).FindStringSubmatch(out)
	if level == nil {
		t.Fatal(out)
	}
	if exposure, err := strconv.ParseFloat(level[1], 64); err != nil || exposure > maxExposure {
		t.Errorf("exposure %s, want %v at most:\n%s", level[1], maxExposure, out)
	}
	t.Logf("exposure %s", level[1])
}

// The daemon knows the unit's flags, and what it writes lies in the directory that systemd makes for it.
func TestSystemdFlags(t *testing.T) {
	const unit = "deploy/systemd/goodput_exporter.service"
	known := flags(t)
	state := "/var/lib/" + first(t, unit, `(?m)^StateDirectory=(\S+)$`) + "/"
	for _, flag := range strings.Fields(first(t, unit, `(?m)^ExecStart=\S+((?:.*\\\n)*.*)$`)) {
		name, value, _ := strings.Cut(flag, "=")
		if !known[name] && flag != `\` {
			t.Errorf("the daemon has no flag %s", name)
		}
		if writes[name] && !strings.HasPrefix(value, state) {
			t.Errorf("%s is not below %s", flag, state)
		}
	}
}

// The daemon serves on a socket that systemd opened for it.
func TestSystemdSocket(t *testing.T) {
	activate := tool(t, "SYSTEMD_SOCKET_ACTIVATE", "systemd-socket-activate")
	address := freeAddress(t)
	daemon := start(t, activate, "--listen="+address, imageContent(t)+"/bin/goodput_exporter", "--demo", "--web.systemd-socket")
	daemon.get(t, "http://"+address+"/-/healthy")
	daemon.stop(t, daemon.Process.Pid)
}
