// The consumer of kafkajs where a story wants one without a group: alone in a group that nobody else knows, to
// which nothing is ever committed. It keeps its positions itself.
'use strict'

const { randomUUID } = require('node:crypto')
const { kafka, seen } = require('./kafkajs_common')
const { within } = require('./lines')

// How long a fetch waits: between two of them it hears what it is told.
const FETCH_WAIT_MS = 100
const LOOK_AGAIN_AFTER_MS = 5

async function openConsumer(request) {
  const self = new Consumer()
  self.topic = request.topic
  self.timeout = request.wait_ms_max
  self.waiting = []
  // The next offset of each partition, where it is known.
  self.positions = new Map(await startOf(request))
  self.wanted = new Set(request.partitions)
  self.consumer = kafka(request, self.timeout).consumer(settings(request))
  await within(self.timeout, 'connect', self.consumer.connect())
  await self.consumer.subscribe({ topic: request.topic, fromBeginning: request.start.at !== 'end' })
  self.fetched = new Promise(resolve => self.consumer.on(self.consumer.events.FETCH, resolve))
  // Whenever it joins, it would begin with what is committed, and nothing is.
  self.consumer.on(self.consumer.events.GROUP_JOIN, () => self.seek())
  await self.consumer.run({ autoCommit: false, eachMessage: async each => self.take(each) })
  return self
}

function settings(request) {
  const limit = request.fetch_bytes_max
  return {
    groupId: `alone-${randomUUID()}`,
    readUncommitted: !request.committed,
    maxWaitTimeInMs: FETCH_WAIT_MS,
    ...(limit === null ? {} : { maxBytes: limit, maxBytesPerPartition: limit }),
  }
}

// [partition, offset] of those whose start is a number.
async function startOf({ start, partitions, topic, ...request }) {
  if (start.at === 'offset') return partitions.map(each => [each, start.offset])
  if (start.at !== 'time') return []
  const admin = kafka(request, request.wait_ms_max).admin()
  await within(request.wait_ms_max, 'connect', admin.connect())
  const found = await admin.fetchTopicOffsetsByTimestamp(topic, start.timestamp_ms)
  await admin.disconnect()
  return found.map(each => [each.partition, Number(each.offset)])
}

class Consumer {
  seek() {
    for (const [partition, offset] of this.positions) {
      this.consumer.seek({ topic: this.topic, partition, offset: String(offset) })
    }
  }

  take({ partition, message }) {
    const offset = Number(message.offset)
    if (!this.wanted.has(partition) || offset < (this.positions.get(partition) ?? 0)) return
    this.positions.set(partition, offset + 1)
    this.waiting.push(seen(partition, message))
  }

  settle() {
    return within(this.timeout, 'settle', this.fetched).then(() => null)
  }

  async read({ count }) {
    const deadline = Date.now() + this.timeout
    while (this.waiting.length < count) {
      if (Date.now() > deadline) throw new Error(`${this.waiting.length} of ${count} records came`)
      await new Promise(resolve => setTimeout(resolve, LOOK_AGAIN_AFTER_MS))
    }
    return this.waiting.splice(0, count)
  }

  close() {
    // Nobody waits for its partitions, and a broker may be away.
  }
}

module.exports = { FETCH_WAIT_MS, LOOK_AGAIN_AFTER_MS, openConsumer }
