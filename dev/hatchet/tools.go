//go:build tools

// Package tools pins the Hatchet server that `npm run bench` compares Forge with.
package tools

import (
	_ "github.com/hatchet-dev/hatchet/cmd/hatchet-admin"
	_ "github.com/hatchet-dev/hatchet/cmd/hatchet-lite"
	_ "github.com/hatchet-dev/hatchet/cmd/hatchet-migrate"
)
