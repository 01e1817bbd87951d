package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"goodput_exporter/probe/probetest"
)

// webPassword belongs to webHash, which is bcrypt with the least cost.
const (
	webPassword = "open-the-metrics"
	webHash     = "$2a$04$PxX0U5mjFon4G/xneq9wAeVlGJVQpgh1Fsj3tjjk3nxPxJAbWk6Gi"
)

func TestWebConfigBasicAuth(t *testing.T) {
	t.Parallel()
	web := configure(t, "basic_auth_users: {prometheus: "+webHash+"}\n")
	d := launch(t, "--config.file="+configure(t, oneTarget(simulate(t, probetest.Config{Models: oneModel}))), "--web.config.file="+web)

	if p := get(t, d.url+"/metrics"); p.status != http.StatusUnauthorized {
		t.Errorf("without a password: status %d", p.status)
	}
	for password, status := range map[string]int{webPassword: http.StatusOK, "wrong": http.StatusUnauthorized} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, d.url+"/metrics", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		req.SetBasicAuth("prometheus", password)
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != status {
			t.Errorf("with the password %s: status %d, want %d", password, resp.StatusCode, status)
		}
	}
}

func TestWebConfigTLS(t *testing.T) {
	t.Parallel()
	cert, key := newCertificate(t)
	dir := t.TempDir()
	write(t, filepath.Join(dir, "cert.pem"), cert)
	write(t, filepath.Join(dir, "key.pem"), key)
	web := write(t, filepath.Join(dir, "web.yml"), "tls_server_config: {cert_file: cert.pem, key_file: key.pem}\n")
	d := launch(t, "--config.file="+configure(t, oneTarget(simulate(t, probetest.Config{Models: oneModel}))), "--web.config.file="+web)

	if p := get(t, d.url+"/metrics"); p.status != http.StatusBadRequest {
		t.Errorf("over plain HTTP: status %d: %s", p.status, p.body)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(cert))
	trusting := &http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: roots}}}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, strings.Replace(d.url, "http:", "https:", 1)+"/metrics", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := trusting.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("over TLS: status %d", resp.StatusCode)
	}
}

// newCertificate makes a certificate for loopback that signs itself, and its key, both in PEM.
func newCertificate(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "loopback"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	encode := func(kind string, der []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
	}
	return encode("CERTIFICATE", der), encode("PRIVATE KEY", pkcs8)
}
