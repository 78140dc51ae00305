//go:build tools

// Package tools pins the Temporal CLI that the embedded stack builds when no binary can be downloaded.
package tools

import _ "github.com/temporalio/cli/cmd/temporal"
