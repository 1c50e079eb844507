package expansion

// UnexpandedReferences collects what one start of a container leaves unexpanded,
// for one event. All methods may be called on nil, which collects nothing: that is
// the feature turned off. It is not for concurrent use.
type UnexpandedReferences struct {
	container string
	recorder  ObjectEventRecorder
	// found is in the order in which the names were first met. The order is the
	// container's, so that a restart makes the same message and its event is
	// counted with the ones before.
	found []*unexpandedName
	known map[string]*unexpandedName
}

// unexpandedName is a name and the places that refer to it.
type unexpandedName struct {
	name   string
	places []string
}

// NewUnexpandedReferences returns an empty collection for one start of the
// container of that name. Its event goes to recorder.
func NewUnexpandedReferences(container string, recorder ObjectEventRecorder) *UnexpandedReferences {
	return &UnexpandedReferences{container: container, recorder: recorder}
}

// InEnv is what to give to MappingFuncFor for the value of the variable called
// name.
func (u *UnexpandedReferences) InEnv(name string) ObjectEventRecorder {
	if u == nil {
		return nil // without the work of joining the name
	}
	return u.in("env " + name)
}

// InCommand is what to give to MappingFuncFor for the container's command.
func (u *UnexpandedReferences) InCommand() ObjectEventRecorder { return u.in("command") }

// InArgs is what to give to MappingFuncFor for the container's args.
func (u *UnexpandedReferences) InArgs() ObjectEventRecorder { return u.in("args") }

func (u *UnexpandedReferences) in(where string) ObjectEventRecorder {
	// Not a nil *place: MappingFuncFor would take it for a recorder.
	if u == nil {
		return nil
	}
	return &place{ObjectEventRecorder: u.recorder, references: u, where: where}
}

// Record raises one event of type Warning for all that was collected, and none if
// nothing was.
func (u *UnexpandedReferences) Record() {
	if u == nil || len(u.found) == 0 {
		return
	}
	u.recorder.Event(eventTypeWarning, UnexpandedReferencesReason, u.message())
}

// place is a part of a container in which references stand. Its events are the
// recorder's own.
type place struct {
	ObjectEventRecorder
	references *UnexpandedReferences
	where      string
}

func (p *place) add(name string) {
	u := p.references
	known, ok := u.known[name]
	if !ok {
		if u.known == nil {
			u.known = map[string]*unexpandedName{}
		}
		known = &unexpandedName{name: name}
		u.known[name] = known
		u.found = append(u.found, known)
	}
	// One place is done before the next begins: a repetition follows at once.
	if last := len(known.places) - 1; last < 0 || known.places[last] != p.where {
		known.places = append(known.places, p.where)
	}
}
