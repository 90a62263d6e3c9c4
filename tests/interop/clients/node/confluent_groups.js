// @confluentinc/kafka-javascript in groups: tests/support/clients/remote_groups.py says what is asked.
'use strict'

const kafka = require('@confluentinc/kafka-javascript')
const { call, common, connect, seen } = require('./confluent_common')
const { within } = require('./lines')

const RECORDS_MAX = 100
const STATES = {
  [kafka.ConsumerGroupStates.STABLE]: 'Stable',
  [kafka.ConsumerGroupStates.EMPTY]: 'Empty',
}

async function openMember(request) {
  const self = new Member()
  self.topic = request.topic
  self.timeout = request.wait_ms_max
  self.waiting = []
  self.positions = new Map()
  self.consumer = new kafka.KafkaConsumer(settings(request), { 'auto.offset.reset': 'earliest' })
  await connect(self.consumer, self.timeout)
  self.consumer.setDefaultConsumeTimeout(request.moment_ms)
  self.consumer.subscribe([request.topic])
  return self
}

function settings(request) {
  const chosen = {
    ...common(request),
    'group.id': request.group,
    'group.protocol': request.protocol,
    'enable.auto.commit': false,
  }
  if (request.protocol === 'classic') {
    chosen['session.timeout.ms'] = request.session_ms
    chosen['heartbeat.interval.ms'] = request.heartbeat_ms
  }
  if (request.instance !== null) chosen['group.instance.id'] = request.instance
  return chosen
}

class Member {
  async partitions() {
    await this.work()
    return this.consumer.assignments().map(each => each.partition)
  }

  async work() {
    this.waiting.push(...(await call(done => this.consumer.consume(RECORDS_MAX, done))).map(seen))
  }

  async read({ count }) {
    const deadline = Date.now() + this.timeout
    while (this.waiting.length < count) {
      if (Date.now() > deadline) throw new Error(`${this.waiting.length} of ${count} records came`)
      await this.work()
    }
    const found = this.waiting.splice(0, count)
    for (const { partition, offset } of found) this.positions.set(partition, offset + 1)
    return found
  }

  commit() {
    const places = [...this.positions].map(([partition, offset]) => ({ topic: this.topic, partition, offset }))
    this.consumer.commitSync(places)
  }

  close() {
    return within(this.timeout, 'disconnect', call(done => this.consumer.disconnect(done)))
  }
}

async function openGroupAdmin(request) {
  const self = new GroupAdmin()
  self.request = request
  self.options = { timeout: request.wait_ms_max }
  self.admin = kafka.AdminClient.create(common(request))
  return self
}

class GroupAdmin {
  async commit({ group, topic, commits }) {
    const places = Object.entries(commits).map(([partition, commit]) => ({
      topic,
      partition: Number(partition),
      ...commit,
    }))
    const consumer = new kafka.KafkaConsumer({ ...common(this.request), 'group.id': group }, {})
    await connect(consumer, this.options.timeout)
    try {
      consumer.commitSync(places)
    } finally {
      await call(done => consumer.disconnect(done))
    }
  }

  async committed({ group, topic, partitions }) {
    const asked = [{ groupId: group, partitions: partitions.map(partition => ({ topic, partition })) }]
    const [found] = await call(done => this.admin.listConsumerGroupOffsets(asked, this.options, done))
    if (found.error) throw found.error
    // librdkafka has names for no offset, and this gives none for them.
    const there = found.partitions.filter(each => each.offset >= 0)
    return Object.fromEntries(
      there.map(each => [each.partition, { offset: each.offset, metadata: each.metadata ?? '' }])
    )
  }

  async groups() {
    const found = await call(done => this.admin.listGroups(this.options, done))
    if (found.errors.length > 0) throw found.errors[0]
    return found.groups.map(each => each.groupId)
  }

  async describe({ group }) {
    const [found] = (await call(done => this.admin.describeGroups([group], this.options, done))).groups
    if (found.error) throw found.error
    const members = found.members.map(each => each.assignment.topicPartitions.map(place => place.partition))
    return { state: STATES[found.state] ?? `state ${found.state}`, members }
  }

  async delete({ group }) {
    const [done] = await call(next => this.admin.deleteGroups([group], this.options, next))
    if (done.error) throw done.error
  }

  close() {
    this.admin.disconnect()
  }
}

module.exports = { openGroupAdmin, openMember }
