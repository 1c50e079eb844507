package bench

// ask is a relation that is asked for between two benchmarks of test/bench.
type ask struct {
	what        string
	over, under string // benchmarks; without under, over's own value counts
	unit        string
	scale       float64 // of the value; 1 unless set
	atLeast     bool
	asked       float64
}

// timesFaster asks that the contestant mine is at least so many times as fast as
// another in the benchmark of that name.
func timesFaster(benchmark, mine, than string, times float64) ask {
	return ask{
		what: caseName(benchmark) + ": " + than + " / " + mine, atLeast: true, asked: times,
		over: benchmark + "/by=" + than, under: benchmark + "/by=" + mine, unit: secPerOp,
	}
}

// relations looks up what was reached.
func relations(m *Measurements, asks []ask) ([]Relation, error) {
	var relations []Relation
	for _, a := range asks {
		reached, err := m.Value(a.over, a.unit)
		if err != nil {
			return nil, err
		}
		if a.under != "" {
			under, err := m.Value(a.under, a.unit)
			if err != nil {
				return nil, err
			}
			reached /= under
		}
		if a.scale != 0 {
			reached *= a.scale
		}
		relations = append(relations, Relation{What: a.what, AtLeast: a.atLeast, Asked: a.asked, Reached: reached})
	}
	return relations, nil
}
