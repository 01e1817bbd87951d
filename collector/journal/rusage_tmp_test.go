package journal
import ("testing";"syscall";"time";"bytes";"goodput_exporter/probe";"runtime/debug")
func cpu() time.Duration { var r syscall.Rusage; syscall.Getrusage(1,&r); return time.Duration(r.Utime.Nano()+r.Stime.Nano()) }
func TestTmpCPU(t *testing.T) {
	debug.SetGCPercent(100)
	text := lines(t, 1000)
	for range 5 {
	a:=cpu()
	for range 20 { decode(text, time.Time{}) }
	b:=cpu()
	for range 4 { for line := range bytes.Lines(text) { new(probe.Result).UnmarshalJSON(line) } }
	c:=cpu()
	t.Logf("own %v any %v", (b-a)/20000, (c-b)/4000)
	}
}
