package sim

import "time"

// Rules is a set of alerts that are evaluated together.
type Rules struct {
	Name  string
	Burns []BurnAlert
	// Guard is what the burn alerts ask beyond the burn rate; nil asks nothing.
	Guard *Guard
	// Down is the alert on a target that gives no good answer; nil where there is none.
	Down *DownAlert
	// Score is the alert on a detector's gauge; nil where there is none.
	Score *ScoreAlert
}

// BurnAlert fires while the share of bad probes is above Factor × error budget over both windows.
type BurnAlert struct {
	Name          string
	Factor        float64
	Long, Short   time.Duration
	For           time.Duration
	KeepFiringFor time.Duration
	Page          bool // else a ticket
}

// Guard is the evidence that a burn alert asks for on its long window.
type Guard struct {
	MaxThreshold float64 // the threshold on the share of bad probes is never higher
	Z            float64 // quantile of the normal distribution for Wilson's lower bound
	MinBad       float64 // bad probes, at least; in terms of increase(), which extrapolates
	MinFill      float64 // the share of the window's probes that must exist
}

// DownAlert pages while some window holds enough probes and none of them was good.
type DownAlert struct {
	Name      string
	Windows   []time.Duration
	MinProbes float64 // more than this; in terms of increase()
	For       time.Duration
}

// ScoreAlert pages while a detector's gauge is above 1.
type ScoreAlert struct {
	For time.Duration
}

const day = 24 * time.Hour

// Shipped returns the rules of deploy/rules. A test holds the two together.
func Shipped() Rules {
	r := Windows()
	r.Name, r.Score = "shipped", &ScoreAlert{}
	return r
}

// Windows returns the shipped rules over windows of counters: all but GoodputDrop.
func Windows() Rules {
	return Rules{
		Name: "without score",
		Burns: []BurnAlert{
			{Name: "14.4x 1h/5m", Factor: 14.4, Long: time.Hour, Short: 5 * time.Minute, For: time.Minute, Page: true},
			{Name: "6x 6h/30m", Factor: 6, Long: 6 * time.Hour, Short: 30 * time.Minute, For: 5 * time.Minute, Page: true},
			{Name: "3x 1d/2h", Factor: 3, Long: day, Short: 2 * time.Hour, For: 15 * time.Minute},
			{Name: "1x 3d/6h", Factor: 1, Long: 3 * day, Short: 6 * time.Hour, For: time.Hour, KeepFiringFor: time.Hour},
		},
		Guard: &Guard{MaxThreshold: 0.6, Z: 2.326348, MinBad: 4.5, MinFill: 0.25},
		Down: &DownAlert{
			Name:      "down",
			Windows:   []time.Duration{2 * time.Minute, 4 * time.Minute, 8 * time.Minute, 40 * time.Minute},
			MinProbes: 5.5,
			For:       time.Minute,
		},
	}
}

// Plain returns the multiwindow, multi-burn-rate rules of the SRE workbook as sloth generates them.
func Plain() Rules {
	return Rules{
		Name: "plain",
		Burns: []BurnAlert{
			{Name: "14.4x 1h/5m", Factor: 14.4, Long: time.Hour, Short: 5 * time.Minute, Page: true},
			{Name: "6x 6h/30m", Factor: 6, Long: 6 * time.Hour, Short: 30 * time.Minute, Page: true},
			{Name: "3x 1d/2h", Factor: 3, Long: day, Short: 2 * time.Hour},
			{Name: "1x 3d/6h", Factor: 1, Long: 3 * day, Short: 6 * time.Hour},
		},
	}
}

// Answered returns the rules as they see probes that are answered, but not well enough for the SLO: no target is down.
func (r Rules) Answered() Rules {
	r.Down = nil
	return r
}
