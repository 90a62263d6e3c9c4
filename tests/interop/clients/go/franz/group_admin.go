package main

import (
	"context"
	"errors"
	"time"

	"barnabas/interop/clients/lines"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

type groupAdmin struct {
	client *kadm.Client
	wait   time.Duration
}

func openGroupAdmin(request lines.Request) (lines.Opened, error) {
	client, err := kgo.NewClient(common(request)...)
	if err != nil {
		return nil, err
	}
	return &groupAdmin{client: kadm.NewClient(client), wait: request.Wait()}, nil
}

func (a *groupAdmin) Do(request lines.Request) (any, error) {
	ctx, cancel := until(a.wait)
	defer cancel()
	switch request.Op {
	case "commit":
		return nil, a.commit(ctx, request, request.Commits)
	case "committed":
		return a.committed(ctx, request)
	case "groups":
		found, err := a.client.ListGroups(ctx)
		return found.Groups(), err
	case "describe":
		return a.describe(ctx, request)
	case "delete":
		done, err := a.client.DeleteGroup(ctx, request.Group)
		if err != nil {
			return nil, err
		}
		return nil, done.Err
	case "alter_offsets":
		// kadm has one call for both.
		commits := map[int32]lines.Commit{}
		for partition, offset := range request.Offsets {
			commits[partition] = lines.Commit{Offset: offset}
		}
		return nil, a.commit(ctx, request, commits)
	case "delete_offsets":
		return nil, a.deleteOffsets(ctx, request)
	default:
		return lines.Unknown(request)
	}
}

func (a *groupAdmin) commit(
	ctx context.Context, request lines.Request, commits map[int32]lines.Commit,
) error {
	offsets := kadm.Offsets{}
	for partition, commit := range commits {
		offsets.Add(kadm.Offset{
			Topic: request.Topic, Partition: partition, At: commit.Offset, LeaderEpoch: -1, Metadata: commit.Metadata,
		})
	}
	return a.client.CommitAllOffsets(ctx, request.Group, offsets)
}

func (a *groupAdmin) committed(ctx context.Context, request lines.Request) (any, error) {
	partitions, err := request.PartitionList()
	if err != nil {
		return nil, err
	}
	found, err := a.client.FetchOffsets(ctx, request.Group)
	if err != nil {
		return nil, err
	}
	commits := map[int32]lines.Commit{}
	for _, partition := range partitions {
		place, ok := found.Lookup(request.Topic, partition)
		if place.Err != nil {
			return nil, place.Err
		}
		if ok && place.At >= 0 {
			commits[partition] = lines.Commit{Offset: place.At, Metadata: place.Metadata}
		}
	}
	return commits, nil
}

// describe asks in the new way first: what is no group of the new protocol is asked for in the old one.
func (a *groupAdmin) describe(ctx context.Context, request lines.Request) (any, error) {
	found, err := a.client.DescribeConsumerGroups(ctx, request.Group)
	if err != nil {
		return nil, err
	}
	group := found[request.Group]
	if errors.Is(group.Err, kerr.GroupIDNotFound) {
		return a.describeClassic(ctx, request)
	}
	described := lines.Group{State: group.State, Members: [][]int32{}}
	for _, member := range group.Members {
		has := []int32{}
		for partition := range member.Assignment[request.Topic] {
			has = append(has, partition)
		}
		described.Members = append(described.Members, has)
	}
	return described, group.Err
}

func (a *groupAdmin) describeClassic(ctx context.Context, request lines.Request) (any, error) {
	found, err := a.client.DescribeGroups(ctx, request.Group)
	if err != nil {
		return nil, err
	}
	group := found[request.Group]
	described := lines.Group{State: group.State, Members: [][]int32{}}
	for _, member := range group.Members {
		has := []int32{}
		if assigned, ok := member.Assigned.AsConsumer(); ok {
			for _, topic := range assigned.Topics {
				has = append(has, topic.Partitions...)
			}
		}
		described.Members = append(described.Members, has)
	}
	return described, group.Err
}

func (a *groupAdmin) deleteOffsets(ctx context.Context, request lines.Request) error {
	partitions, err := request.PartitionList()
	if err != nil {
		return err
	}
	places := kadm.TopicsSet{}
	places.Add(request.Topic, partitions...)
	done, err := a.client.DeleteOffsets(ctx, request.Group, places)
	if err != nil {
		return err
	}
	return done.Error()
}

func (a *groupAdmin) Close() { a.client.Close() }
