// franz-go (github.com/twmb/franz-go, with its kadm) as a client of the checklist.
package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"barnabas/interop/clients/lines"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

func main() {
	lines.Program{Module: "github.com/twmb/franz-go", Open: open, Refusal: refusal}.Serve()
}

func open(request lines.Request) (lines.Opened, error) {
	switch request.Op {
	case "open_producer":
		return openProducer(request)
	case "open_consumer":
		return openConsumer(request)
	case "open_member":
		return openMember(request)
	case "open_group_admin":
		return openGroupAdmin(request)
	default:
		return openAdmin(request)
	}
}

func codeOf(err error) *int16 {
	var found *kerr.Error
	if errors.As(err, &found) {
		return &found.Code
	}
	return nil
}

func refusal(err error) *lines.Refusal {
	return &lines.Refusal{Code: codeOf(err), Text: err.Error()}
}

func common(request lines.Request) []kgo.Opt {
	return []kgo.Opt{
		kgo.SeedBrokers(request.Address),
		kgo.RetryBackoffFn(func(int) time.Duration { return request.Reconnect() }),
		kgo.RetryTimeout(request.Wait()),
		// What was learnt about a broker that restarts is out of date at once.
		kgo.MetadataMinAge(request.Reconnect()),
	}
}

// until is a context that ends when the time for one operation is over.
func until(wait time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(
		context.Background(), wait, fmt.Errorf("not within %s", wait),
	)
}
