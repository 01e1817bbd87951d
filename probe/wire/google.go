package wire

import (
	"net/url"
	"strings"
)

// What the models on Vertex AI have in common, Google's and others'. Source: Vertex AI's REST reference.

// isVertex tells Vertex AI, which a gateway may stand before, by its host or its path.
func isVertex(u *url.URL) bool {
	return strings.Contains(u.Path, "/projects/") || strings.Contains(u.Path, "/publishers/") ||
		strings.HasSuffix(u.Hostname(), "aiplatform.googleapis.com")
}

// vertexURL returns the URL of a model's method: the one for whole answers, or the one for streams. A URL that ends
// with either method, or with the model, is completed.
func vertexURL(base *url.URL, r Request, publisher, whole, streamed string) *url.URL {
	u := *base
	u.RawPath = ""
	path := strings.TrimRight(u.Path, "/")
	for _, method := range []string{":" + whole, ":" + streamed} {
		path = strings.TrimSuffix(path, method)
	}
	if !strings.Contains(path, "/models/") {
		if publisher != "" && !strings.Contains(path, "/publishers/") && strings.Contains(path, "/locations/") {
			path += "/publishers/" + publisher
		}
		path += "/models/" + r.Model
	}
	method := whole
	if r.Stream {
		method = streamed
	}
	u.Path = path + ":" + method
	return &u
}
