package envfile

import "strings"

// Values are the variables that a file defines, of those that were asked for.
type Values struct {
	keys keyIndex
	// text has all values, and places says which part of it is a key's.
	text   string
	places []place
}

// Lookup returns the value of key. If the file does not define it, or Parse was
// not asked for it, the error is ErrKeyNotFound.
func (v *Values) Lookup(key string) (string, error) {
	i, ok := v.keys.find([]byte(key))
	if !ok || v.places[i] == undefined {
		return "", ErrKeyNotFound
	}
	return v.text[v.places[i].start():v.places[i].end()], nil
}

// place is where a value stands: its start, its end, and whether it is joined,
// that is made of pieces of the file, as one of several lines may be. It is
// small because there is one for each key.
type place uint64

// undefined tells no value from an empty one: no value starts at 0.
const undefined place = 0

const joined place = 1 << 63

func placeOf(start, end int) place { return place(start)<<32 | place(end) }

func (p place) start() int { return int(p &^ joined >> 32) }

func (p place) end() int { return int(uint32(p)) }

func (p place) len() int { return p.end() - p.start() }

// selection keeps where the last definition of each key asked for stands in the
// file, until the file is known to be right to its end.
type selection struct {
	data   []byte
	keys   keyIndex
	places []place
	// next is the key after the one found last: files mostly have the order in
	// which a container asks for their keys.
	next int
}

func newSelection(data []byte, keys []string) *selection {
	s := &selection{data: data, keys: newKeyIndex(keys)}
	s.places = make([]place, len(s.keys.keys))
	return s
}

func (s *selection) set(name []byte, at place) {
	i := s.next
	if i >= len(s.keys.keys) || s.keys.keys[i] != string(name) {
		var ok bool
		if i, ok = s.keys.find(name); !ok {
			return
		}
	}
	s.places[i] = at
	s.next = i + 1
}

// values copies the values out of the file's memory, all into one string. eachPiece
// yields the pieces of a joined value.
func (s *selection) values(eachPiece func(raw []byte, yield func(piece []byte))) *Values {
	v := &Values{keys: s.keys, places: s.places}
	size, first, last, simple := 0, len(s.data), 0, true
	for _, at := range s.places {
		if at == undefined {
			continue
		}
		size += at.len()
		first, last = min(first, at.start()), max(last, at.end())
		simple = simple && at&joined == 0
	}
	// One copy, with what is between them, is faster, if that is at most half as
	// much again. No value starts at 0 in it either: the = or the quote is left in
	// front.
	if between := last - first - size; simple && size > 0 && between < size/2 {
		v.text = string(s.data[first-1 : last])
		for i, at := range s.places {
			if at != undefined {
				s.places[i] = placeOf(at.start()-first+1, at.end()-first+1)
			}
		}
		return v
	}
	var text strings.Builder
	text.Grow(1 + size)
	text.WriteByte(0)
	for i, at := range s.places {
		if at == undefined {
			continue
		}
		start, raw := text.Len(), s.data[at.start():at.end()]
		if at&joined == 0 {
			text.Write(raw)
		} else {
			eachPiece(raw, func(piece []byte) { text.Write(piece) })
		}
		s.places[i] = placeOf(start, text.Len())
	}
	v.text = text.String()
	return v
}
