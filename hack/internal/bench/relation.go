package bench

// Relation is what one number should be to another, however fast the host.
type Relation struct {
	What    string
	AtLeast bool // or at most
	Asked   float64
	Reached float64
}

// Met reports whether what was asked for was reached.
func (r Relation) Met() bool {
	if r.AtLeast {
		return r.Reached >= r.Asked
	}
	return r.Reached <= r.Asked
}

// Relations is a table of what was asked for and what was reached. It informs: a
// loaded host may miss what a quiet one reaches.
func Relations(relations []Relation) Table {
	t := Table{Name: "relations", Columns: []Column{{Name: "relation"}, {Name: "asked"}, {Name: "reached", Unit: Number}, {Name: "met"}}}
	for _, r := range relations {
		sign := "<="
		if r.AtLeast {
			sign = ">="
		}
		t.Add(r.What, sign+" "+significant(r.Asked), r.Reached, r.Met())
	}
	return t
}

// Report is what one group of measurements gave.
type Report struct {
	Table     Table
	Relations []Relation
}
