package main

import (
	"fmt"

	"barnabas/interop/clients/lines"

	"github.com/IBM/sarama"
)

// There is nothing that tells the epoch.
const noLeaderEpoch = -1

type groupAdmin struct {
	client sarama.Client
	admin  sarama.ClusterAdmin
}

func openGroupAdmin(request lines.Request) (lines.Opened, error) {
	config := common(request)
	config.Admin.Timeout = request.Wait()
	config.Consumer.Offsets.AutoCommit.Enable = false
	config.Consumer.Return.Errors = true
	client, err := sarama.NewClient([]string{request.Address}, config)
	if err != nil {
		return nil, err
	}
	opened, err := sarama.NewClusterAdminFromClient(client)
	return &groupAdmin{client: client, admin: opened}, err
}

func (a *groupAdmin) Do(request lines.Request) (any, error) {
	switch request.Op {
	case "commit":
		return nil, a.commit(request)
	case "committed":
		return a.committed(request)
	case "groups":
		found, err := a.admin.ListConsumerGroups()
		names := []string{}
		for name := range found {
			names = append(names, name)
		}
		return names, err
	case "describe":
		return a.describe(request)
	case "delete":
		return nil, a.admin.DeleteConsumerGroup(request.Group)
	case "alter_offsets":
		return nil, a.alterOffsets(request)
	case "delete_offsets":
		return nil, a.deleteOffsets(request)
	default:
		return lines.Unknown(request)
	}
}

// commit is through the manager that sarama has for those who read without a group.
func (a *groupAdmin) commit(request lines.Request) error {
	manager, err := sarama.NewOffsetManagerFromClient(request.Group, a.client)
	if err != nil {
		return err
	}
	places := []sarama.PartitionOffsetManager{}
	for partition, commit := range request.Commits {
		place, err := manager.ManagePartition(request.Topic, partition)
		if err != nil {
			manager.Close()
			return err
		}
		places = append(places, place)
		// It marks no offset that is behind, and resets to none that is ahead.
		if next, _ := place.NextOffset(); commit.Offset > next {
			place.MarkOffset(commit.Offset, commit.Metadata)
		} else {
			place.ResetOffset(commit.Offset, commit.Metadata)
		}
	}
	manager.Commit()
	// What was refused can be read to its end when the manager is closed.
	manager.Close()
	for _, place := range places {
		for refused := range place.Errors() {
			err = refused
		}
	}
	return err
}

func (a *groupAdmin) committed(request lines.Request) (any, error) {
	partitions, err := request.PartitionList()
	if err != nil {
		return nil, err
	}
	found, err := a.admin.ListConsumerGroupOffsets(
		request.Group, map[string][]int32{request.Topic: partitions},
	)
	if err != nil {
		return nil, err
	}
	commits := map[int32]lines.Commit{}
	for _, partition := range partitions {
		place := found.GetBlock(request.Topic, partition)
		if place == nil {
			return nil, fmt.Errorf("nothing is said about %s-%d", request.Topic, partition)
		}
		if place.Err != sarama.ErrNoError {
			return nil, place.Err
		}
		if place.Offset >= 0 {
			commits[partition] = lines.Commit{Offset: place.Offset, Metadata: place.Metadata}
		}
	}
	return commits, nil
}

func (a *groupAdmin) describe(request lines.Request) (any, error) {
	found, err := a.admin.DescribeConsumerGroups([]string{request.Group})
	if err != nil {
		return nil, err
	}
	group := found[0]
	if group.Err != sarama.ErrNoError {
		return nil, group.Err
	}
	described := lines.Group{State: group.State, Members: [][]int32{}}
	for _, member := range group.Members {
		assigned, err := member.GetMemberAssignment()
		if err != nil {
			return nil, err
		}
		has := []int32{}
		if assigned != nil {
			has = append(has, assigned.Topics[request.Topic]...)
		}
		described.Members = append(described.Members, has)
	}
	return described, nil
}

func (a *groupAdmin) alterOffsets(request lines.Request) error {
	places := map[int32]sarama.OffsetAndMetadata{}
	for partition, offset := range request.Offsets {
		places[partition] = sarama.OffsetAndMetadata{Offset: offset, LeaderEpoch: noLeaderEpoch}
	}
	all := map[string]map[int32]sarama.OffsetAndMetadata{request.Topic: places}
	done, err := a.admin.AlterConsumerGroupOffsets(request.Group, all, nil)
	if err != nil {
		return err
	}
	for _, refused := range done.Errors[request.Topic] {
		if refused != sarama.ErrNoError {
			return refused
		}
	}
	return nil
}

func (a *groupAdmin) deleteOffsets(request lines.Request) error {
	partitions, err := request.PartitionList()
	if err != nil {
		return err
	}
	for _, partition := range partitions {
		if err := a.admin.DeleteConsumerGroupOffset(request.Group, request.Topic, partition); err != nil {
			return err
		}
	}
	return nil
}

// Close closes the client that it was made of, too.
func (a *groupAdmin) Close() { a.admin.Close() }
