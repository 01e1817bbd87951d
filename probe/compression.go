package probe

import (
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
)

// plain undoes a compression that nobody asked for, where it is gzip.
func (a *attempt) plain(resp *http.Response) (io.Reader, error) {
	switch c := compression(resp.Header); c {
	case "":
		return resp.Body, nil
	case "gzip", "x-gzip":
		a.flag(FlagEncodedGzip)
		return gzip.NewReader(resp.Body)
	default:
		return nil, errCompressed(c)
	}
}

// compressions are the content codings that change a body, of IANA's registry. Other names, such as the "none" by which
// some servers keep their proxies from compressing a stream, leave it as it is.
var compressions = []string{"br", "compress", "dcb", "dcz", "deflate", "gzip", "x-compress", "x-gzip", "zstd"}

// compression returns how a body is compressed, in lower case, "" where it is not. Several compressions stand in a list.
func compression(h http.Header) string {
	var list []string
	for name := range strings.SplitSeq(strings.Join(h.Values("Content-Encoding"), ","), ",") {
		if name = strings.ToLower(strings.TrimSpace(name)); slices.Contains(compressions, name) {
			list = append(list, name)
		}
	}
	return strings.Join(list, ", ")
}

// errCompressed says that a body is compressed in a way that is not undone.
type errCompressed string

func (e errCompressed) Error() string {
	return fmt.Sprintf("the body is compressed by %s, though identity was asked for", string(e))
}
