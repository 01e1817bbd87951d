package pause

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// stored is the content of the file.
type stored struct {
	Silences []*Silence `json:"silences"`
}

// restore reads the silences that the process before has left.
func (r *Registry) restore(now time.Time) error {
	if r.opts.File == "" {
		return nil
	}
	data, err := os.ReadFile(r.opts.File)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the silences: %w", err)
	}
	var file stored
	err = json.Unmarshal(data, &file)
	if err == nil && slices.ContainsFunc(file.Silences, func(s *Silence) bool { return s == nil || s.ID == "" }) {
		err = errors.New("there is a silence without an id")
	}
	if err != nil {
		return fmt.Errorf("read the silences: %s is not as it was written; remove it to begin without any: %w", r.opts.File, err)
	}
	r.silences = file.Silences
	r.put(r.present(now))
	return nil
}

// save writes the file anew beside the present one and puts it in its place, so that there is always a whole one.
func (r *Registry) save(silences []*Silence) error {
	if r.opts.File == "" {
		return nil
	}
	data, err := json.MarshalIndent(stored{silences}, "", "  ")
	if err != nil {
		return fmt.Errorf("write the silences: %w", err)
	}
	next, err := os.CreateTemp(filepath.Dir(r.opts.File), filepath.Base(r.opts.File)+".*")
	if err != nil {
		return fmt.Errorf("write the silences: %w", err)
	}
	_, err = next.Write(append(data, '\n'))
	err = errors.Join(err, next.Sync(), next.Close())
	if err == nil {
		err = os.Rename(next.Name(), r.opts.File)
	}
	if err != nil {
		_ = os.Remove(next.Name())
		return fmt.Errorf("write the silences: %w", err)
	}
	return nil
}
