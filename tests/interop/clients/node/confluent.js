// @confluentinc/kafka-javascript as a client of the checklist: librdkafka with the interface of node-rdkafka,
// which can be assigned partitions without a group.
'use strict'

const kafka = require('@confluentinc/kafka-javascript')
const { version } = require('@confluentinc/kafka-javascript/package.json')
const { openAdmin } = require('./confluent_admin')
const { call, common, connect, seen } = require('./confluent_common')
const { openGroupAdmin, openMember } = require('./confluent_groups')
const { fromBase64, refusal, serve, within } = require('./lines')

const POLL_MS = 20
const OFFSETS = { beginning: -2, end: -1 }
const OFFSET_OUT_OF_RANGE = 1
// The least that message.max.bytes may be, to which librdkafka raises fetch.max.bytes.
const FETCH_BYTES_MIN = 1000
// librdkafka demands it even of a consumer that is assigned its partitions; nothing is ever committed to it.
const UNUSED_GROUP = 'required-by-librdkafka'

const program = {
  version: () => `${version} (librdkafka ${kafka.librdkafkaVersion})`,
  features: () => kafka.features,
  codeOf,
  open_producer: request => Producer.open(request),
  open_consumer: request => Consumer.open(request),
  open_admin: openAdmin,
  open_member: openMember,
  open_group_admin: openGroupAdmin,
}

// librdkafka numbers its own errors below zero. Of an offset that is gone it makes one of its own, which has no
// other cause where offsets are assigned.
function codeOf(error) {
  if (error.code === kafka.CODES.ERRORS.ERR__AUTO_OFFSET_RESET) return OFFSET_OUT_OF_RANGE
  return error.code > 0 ? error.code : null
}

// A buffer of no bytes has no address, which it takes for null; the empty part of another one has.
const EMPTY = Buffer.alloc(1).subarray(0, 0)
const toSend = text => (text === '' ? EMPTY : fromBase64(text))

class Producer {
  static async open(request) {
    const self = new Producer()
    self.options = request
    self.deliveries = []
    self.producer = new kafka.Producer({
      ...common(request),
      'compression.type': request.codec,
      acks: request.acks,
      'enable.idempotence': request.idempotent,
      'linger.ms': request.linger_ms,
      'message.timeout.ms': request.give_up_after_ms,
      // Without idempotence a retry may pass its neighbour unless there is one at a time.
      'max.in.flight': request.idempotent ? 5 : 1,
      dr_cb: true,
    })
    self.producer.on('delivery-report', (error, report) => self.delivered(error, report))
    await connect(self.producer, request.wait_ms_max)
    self.producer.setPollInterval(POLL_MS)
    return self
  }

  send({ value, key, headers, timestamp_ms, partition }) {
    const number = this.deliveries.length
    this.deliveries.push(null)
    this.producer.produce(
      this.options.topic,
      partition,
      toSend(value),
      toSend(key),
      timestamp_ms,
      number,
      headers.map(([name, bytes]) => ({ [name]: fromBase64(bytes) }))
    )
  }

  delivered(error, { opaque, partition, offset }) {
    if (error) this.deliveries[opaque] = { error: refusal(program, error) }
    else this.deliveries[opaque] = { partition, offset: this.options.acks === 0 ? null : offset }
  }

  async finish() {
    await call(done => this.producer.flush(this.options.wait_ms_max, done))
    // The reports are taken from the queue of librdkafka by the next polls.
    const reported = async () => {
      while (this.deliveries.includes(null)) await new Promise(resolve => setTimeout(resolve, POLL_MS))
    }
    await within(this.options.wait_ms_max, 'finish', reported())
    return this.deliveries
  }

  close() {
    // Its own disconnect would wait for what was not delivered.
  }
}

class Consumer {
  static async open(request) {
    const self = new Consumer()
    self.timeout = request.wait_ms_max
    self.partitions = request.partitions
    self.atEnd = new Set()
    self.early = []
    self.consumer = new kafka.KafkaConsumer(consumerSettings(request), {
      'auto.offset.reset': request.out_of_range === 'fail' ? 'error' : 'earliest',
    })
    self.consumer.on('partition.eof', ({ partition }) => self.atEnd.add(partition))
    await connect(self.consumer, self.timeout)
    self.consumer.setDefaultConsumeTimeout(POLL_MS)
    self.consumer.assign(await self.places(request))
    return self
  }

  places({ topic, partitions, start }) {
    const at = offset => partitions.map(partition => ({ topic, partition, offset }))
    if (start.at !== 'time') return at(OFFSETS[start.at] ?? start.offset)
    return call(done => this.consumer.offsetsForTimes(at(start.timestamp_ms), this.timeout, done))
  }

  settle() {
    const settled = async () => {
      while (this.atEnd.size < this.partitions.length) this.early.push(...(await this.poll(1)))
    }
    return within(this.timeout, 'settle', settled())
  }

  async read({ count }) {
    const deadline = Date.now() + this.timeout
    const found = this.early.splice(0)
    while (found.length < count) {
      if (Date.now() > deadline) throw new Error(`${found.length} of ${count} records came`)
      found.push(...(await this.poll(count - found.length)))
    }
    this.early = found.splice(count)
    return found
  }

  async poll(count) {
    return (await call(done => this.consumer.consume(count, done))).map(seen)
  }

  close() {
    return within(this.timeout, 'disconnect', call(done => this.consumer.disconnect(done)))
  }
}

function consumerSettings(request) {
  const settings = {
    ...common(request),
    'group.id': UNUSED_GROUP,
    'enable.auto.commit': false,
    'enable.partition.eof': true,
    'check.crcs': true,
    'isolation.level': request.committed ? 'read_committed' : 'read_uncommitted',
  }
  if (request.fetch_bytes_max !== null) {
    const limit = Math.max(FETCH_BYTES_MIN, request.fetch_bytes_max)
    for (const name of ['fetch.max.bytes', 'max.partition.fetch.bytes', 'message.max.bytes']) settings[name] = limit
  }
  return settings
}

serve(program)
