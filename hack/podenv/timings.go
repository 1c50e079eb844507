package main

import (
	"sync"
	"time"
)

// timings remembers how long steps took.
type timings struct {
	mu    sync.Mutex
	steps []timing
}

type timing struct {
	name   string
	took   time.Duration
	cached bool
}

// add is a progress.Reporter's Timings.
func (t *timings) add(name string, took time.Duration, cached bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err == nil {
		t.steps = append(t.steps, timing{name, took, cached})
	}
}

// sum adds up the steps called name.
func (t *timings) sum(name string) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	var sum time.Duration
	for _, s := range t.steps {
		if s.name == name {
			sum += s.took
		}
	}
	return sum
}
