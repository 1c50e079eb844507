package envfile

import (
	"encoding/binary"
	"fmt"
)

func id(n int64) *int64 { return &n }

// stranger owns none of the files, and has no group of theirs.
var stranger = &Credentials{UID: id(4242), GID: id(4242)}

type aclTestEntry struct {
	tag, bits uint16
	id        uint32
}

const aclNoID = ^uint32(0)

// aclOf lays entries out as the kernel does.
func aclOf(entries []aclTestEntry) []byte {
	list := binary.LittleEndian.AppendUint32(nil, 2)
	for _, e := range entries {
		list = binary.LittleEndian.AppendUint16(list, e.tag)
		list = binary.LittleEndian.AppendUint16(list, e.bits)
		list = binary.LittleEndian.AppendUint32(list, e.id)
	}
	return list
}

func describe(c *Credentials) string {
	text := "UID ?"
	if c.UID != nil {
		text = fmt.Sprint("UID ", *c.UID)
	}
	if c.GID != nil {
		text += fmt.Sprint(", GID ", *c.GID)
	}
	return text + fmt.Sprint(", groups ", c.Groups)
}
