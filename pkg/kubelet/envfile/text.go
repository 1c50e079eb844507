package envfile

import (
	"bytes"
	"encoding/binary"
	"unicode/utf8"
)

// checkText checks what holds for every byte of a file, ahead of its lines.
func checkText(data []byte) error {
	if len(data) > MaxFileBytes {
		return ErrLimitExceeded.atLine(0, ruleFileBytes)
	}
	if bytes.HasPrefix(data, []byte("\xEF\xBB\xBF")) {
		return ErrInvalidSyntax.atLine(1, ruleByteOrder)
	}
	rest := data[plainText(data):]
	if at := bytes.IndexByte(rest, 0); at >= 0 {
		return ErrInvalidSyntax.atLine(lineOf(data, len(data)-len(rest)+at), ruleNUL)
	}
	if !utf8.Valid(rest) {
		return ErrInvalidSyntax.atLine(lineOf(data, invalidUTF8(data)), ruleUTF8)
	}
	return nil
}

// plainText returns how many bytes at the start are surely ASCII and not NUL. It
// looks at 32 at a time, which are nearly always the whole of a file.
func plainText(data []byte) int {
	const (
		lowBits  = 0x0101010101010101
		highBits = 0x8080808080808080
	)
	rest := data
	for len(rest) >= 32 {
		a := binary.LittleEndian.Uint64(rest)
		b := binary.LittleEndian.Uint64(rest[8:])
		c := binary.LittleEndian.Uint64(rest[16:])
		d := binary.LittleEndian.Uint64(rest[24:])
		// The subtraction sets the high bit of a byte that is 0.
		if (a|b|c|d|(a-lowBits)|(b-lowBits)|(c-lowBits)|(d-lowBits))&highBits != 0 {
			break
		}
		rest = rest[32:]
	}
	return len(data) - len(rest)
}

func lineOf(data []byte, at int) int {
	return 1 + bytes.Count(data[:at], []byte{'\n'})
}

func invalidUTF8(data []byte) int {
	at := 0
	for at < len(data) {
		r, size := utf8.DecodeRune(data[at:])
		if r == utf8.RuneError && size == 1 {
			break
		}
		at += size
	}
	return at
}
