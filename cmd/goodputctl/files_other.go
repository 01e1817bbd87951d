//go:build !unix

package main

// enoughFiles knows no limit of open files here.
func enoughFiles(int) error { return nil }
