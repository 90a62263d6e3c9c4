// kafkajs in groups: tests/support/clients/remote_groups.py says what is asked.
'use strict'

const { AssignerProtocol } = require('kafkajs')
const { kafka, seen } = require('./kafkajs_common')
const { FETCH_WAIT_MS, LOOK_AGAIN_AFTER_MS } = require('./kafkajs_consumer')
const { within } = require('./lines')

const pause = milliseconds => new Promise(resolve => setTimeout(resolve, milliseconds))

async function openMember(request) {
  const self = new Member()
  self.topic = request.topic
  self.timeout = request.wait_ms_max
  self.moment = request.moment_ms
  self.waiting = []
  self.positions = new Map()
  self.has = []
  self.consumer = kafka(request, self.timeout).consumer({
    groupId: request.group,
    sessionTimeout: request.session_ms,
    heartbeatInterval: request.heartbeat_ms,
    maxWaitTimeInMs: FETCH_WAIT_MS,
  })
  const { GROUP_JOIN, REBALANCING } = self.consumer.events
  self.consumer.on(GROUP_JOIN, ({ payload }) => (self.has = payload.memberAssignment[self.topic] ?? []))
  self.consumer.on(REBALANCING, () => (self.has = []))
  await within(self.timeout, 'connect', self.consumer.connect())
  await self.consumer.subscribe({ topic: self.topic, fromBeginning: true })
  const take = async ({ partition, message }) => self.waiting.push(seen(partition, message))
  // Not waited for: it may have to wait for the others of the group.
  self.running = self.consumer.run({ autoCommit: false, eachMessage: take })
  return self
}

class Member {
  async partitions() {
    await pause(this.moment)
    return this.has
  }

  async read({ count }) {
    const deadline = Date.now() + this.timeout
    while (this.waiting.length < count) {
      if (Date.now() > deadline) throw new Error(`${this.waiting.length} of ${count} records came`)
      await pause(LOOK_AGAIN_AFTER_MS)
    }
    const found = this.waiting.splice(0, count)
    for (const { partition, offset } of found) this.positions.set(partition, offset + 1)
    return found
  }

  commit() {
    const places = [...this.positions].map(([partition, offset]) => ({
      topic: this.topic,
      partition,
      offset: String(offset),
    }))
    return this.consumer.commitOffsets(places)
  }

  close() {
    return within(this.timeout, 'disconnect', this.consumer.disconnect())
  }
}

async function openGroupAdmin(request) {
  const self = new GroupAdmin()
  self.admin = kafka(request, request.wait_ms_max).admin()
  await within(request.wait_ms_max, 'connect', self.admin.connect())
  return self
}

class GroupAdmin {
  async committed({ group, topic, partitions }) {
    const [found] = await this.admin.fetchOffsets({ groupId: group, topics: [topic] })
    const there = found.partitions.filter(each => partitions.includes(each.partition) && each.offset >= 0)
    return Object.fromEntries(
      there.map(each => [each.partition, { offset: Number(each.offset), metadata: each.metadata }])
    )
  }

  async groups() {
    return (await this.admin.listGroups()).groups.map(each => each.groupId)
  }

  async describe({ group, topic }) {
    const [found] = (await this.admin.describeGroups([group])).groups
    const members = found.members.map(
      each => AssignerProtocol.MemberAssignment.decode(each.memberAssignment)?.assignment[topic] ?? []
    )
    return { state: found.state, members }
  }

  async delete({ group }) {
    await this.admin.deleteGroups([group])
  }

  alter_offsets({ group, topic, offsets }) {
    const partitions = Object.entries(offsets).map(([partition, offset]) => ({
      partition: Number(partition),
      offset: String(offset),
    }))
    return this.admin.setOffsets({ groupId: group, topic, partitions })
  }

  close() {
    return this.admin.disconnect()
  }
}

module.exports = { openGroupAdmin, openMember }
