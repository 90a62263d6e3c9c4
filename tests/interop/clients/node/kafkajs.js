// kafkajs as a client of the checklist. It consumes with groups only: kafkajs_consumer.js.
'use strict'

const { CompressionTypes, ConfigResourceTypes, Partitioners } = require('kafkajs')
const { version } = require('kafkajs/package.json')
const { codeOf, kafka } = require('./kafkajs_common')
const { openConsumer } = require('./kafkajs_consumer')
const { openGroupAdmin, openMember } = require('./kafkajs_groups')
const { fromBase64, refusal, serve, within } = require('./lines')

const CODECS = { none: CompressionTypes.None, gzip: CompressionTypes.GZIP }
const TOPIC_ALREADY_EXISTS = 36
// With this the broker takes its own default.
const DEFAULT_REPLICATION_FACTOR = -1
// By number, as the broker sends them.
const SOURCES = {
  1: 'DYNAMIC_TOPIC_CONFIG',
  2: 'DYNAMIC_BROKER_CONFIG',
  3: 'DYNAMIC_DEFAULT_BROKER_CONFIG',
  4: 'STATIC_BROKER_CONFIG',
  5: 'DEFAULT_CONFIG',
}

const program = {
  version: () => version,
  codeOf,
  open_producer: request => Producer.open(request),
  open_consumer: openConsumer,
  open_admin: request => Admin.open(request),
  open_member: openMember,
  open_group_admin: openGroupAdmin,
}

// It sends what it is given at once and keeps no order between two sends, so messages wait here in line: those
// that came within the linger go together, and the next ones when these are answered.
class Producer {
  static async open(request) {
    const self = new Producer()
    self.options = request
    self.deliveries = []
    self.waiting = []
    self.sending = null
    // Which partition a message went to is known to the partitioner alone.
    self.chosen = new Map()
    self.producer = kafka(request, request.give_up_after_ms).producer({
      idempotent: request.idempotent,
      maxInFlightRequests: 1,
      allowAutoTopicCreation: true,
      createPartitioner: () => self.partitioner(),
    })
    await within(request.wait_ms_max, 'connect', self.producer.connect())
    return self
  }

  partitioner() {
    const usual = Partitioners.DefaultPartitioner()
    return asked => {
      const partition = asked.message.partition ?? usual(asked)
      this.chosen.set(asked.message, partition)
      return partition
    }
  }

  send(request) {
    const message = { key: fromBase64(request.key), value: fromBase64(request.value), headers: {} }
    if (request.partition !== null) message.partition = request.partition
    if (request.timestamp_ms !== null) message.timestamp = String(request.timestamp_ms)
    for (const [name, value] of request.headers) {
      message.headers[name] = [...(message.headers[name] ?? []), fromBase64(value)]
    }
    this.waiting.push({ message, number: this.deliveries.length })
    this.deliveries.push(null)
    this.sending ??= this.sendAll()
  }

  async sendAll() {
    while (this.waiting.length > 0) {
      await new Promise(resolve => setTimeout(resolve, this.options.linger_ms))
      await this.sendSome(this.waiting.splice(0, this.countOfBatch()))
    }
    this.sending = null
  }

  countOfBatch() {
    let [count, bytes] = [0, 0]
    while (count < this.waiting.length && bytes < this.options.batch_bytes_max) {
      const { key, value } = this.waiting[count++].message
      bytes += (key?.length ?? 0) + (value?.length ?? 0)
    }
    return count
  }

  async sendSome(batch) {
    const { topic, acks, codec } = this.options
    try {
      const messages = batch.map(({ message }) => message)
      const answers = await this.producer.send({ topic, acks, compression: CODECS[codec], messages })
      this.delivered(batch, new Map(answers.map(each => [each.partition, Number(each.baseOffset)])))
    } catch (error) {
      for (const { number } of batch) this.deliveries[number] = { error: refusal(program, error) }
    }
    this.chosen.clear()
  }

  // The answer has the first offset of every partition; the others follow in order.
  delivered(batch, nextOffsets) {
    for (const { message, number } of batch) {
      const partition = this.chosen.get(message)
      const offset = this.options.acks === 0 ? null : nextOffsets.get(partition)
      if (offset !== null) nextOffsets.set(partition, offset + 1)
      this.deliveries[number] = { partition, offset }
    }
  }

  async finish() {
    await within(this.options.wait_ms_max, 'finish', Promise.resolve(this.sending))
    return this.deliveries
  }

  close() {
    return this.producer.disconnect()
  }
}

class Admin {
  static async open(request) {
    const self = new Admin()
    self.timeout = request.wait_ms_max
    self.admin = kafka(request, request.wait_ms_max).admin()
    await within(self.timeout, 'connect', self.admin.connect())
    return self
  }

  async create_topic({ topic, partitions, settings }) {
    const configEntries = entries(settings)
    const made = await this.admin.createTopics({
      topics: [
        { topic, numPartitions: partitions, replicationFactor: DEFAULT_REPLICATION_FACTOR, configEntries },
      ],
      timeout: this.timeout,
    })
    // It says so by returning false, whatever the number of partitions was.
    if (!made) throw Object.assign(new Error('the topic exists'), { code: TOPIC_ALREADY_EXISTS })
  }

  delete_topic({ topic }) {
    return this.admin.deleteTopics({ topics: [topic], timeout: this.timeout })
  }

  async add_partitions({ topic, total }) {
    await this.admin.createPartitions({ topicPartitions: [{ topic, count: total }], timeout: this.timeout })
  }

  // The low watermark is asked for, because kafkajs keeps the broker's answer to itself.
  async delete_records({ topic, partition, before }) {
    await this.admin.fetchTopicMetadata({ topics: [topic] })
    await this.admin.deleteTopicRecords({ topic, partitions: [{ partition, offset: String(before) }] })
    return (await this.watermarks({ topic, partition }))[0]
  }

  topic_settings({ topic }) {
    return this.settings(ConfigResourceTypes.TOPIC, topic)
  }

  broker_settings({ broker }) {
    return this.settings(ConfigResourceTypes.BROKER, String(broker))
  }

  async settings(type, name) {
    const found = await this.admin.describeConfigs({ resources: [{ type, name }], includeSynonyms: false })
    return Object.fromEntries(
      found.resources[0].configEntries.map(each => [
        each.configName,
        { value: each.configValue, source: SOURCES[each.configSource] },
      ])
    )
  }

  change_topic({ topic, wanted }) {
    return this.replace(ConfigResourceTypes.TOPIC, topic, wanted)
  }

  change_broker({ broker, wanted }) {
    return this.replace(ConfigResourceTypes.BROKER, String(broker), wanted)
  }

  // What is not wanted is removed: it knows AlterConfigs, which replaces all settings.
  async replace(type, name, wanted) {
    await this.admin.alterConfigs({
      validateOnly: false,
      resources: [{ type, name, configEntries: entries(wanted) }],
    })
  }

  async cluster() {
    const found = await this.admin.describeCluster()
    const brokers = Object.fromEntries(found.brokers.map(each => [each.nodeId, `${each.host}:${each.port}`]))
    return { cluster_id: found.clusterId, controller: found.controller, brokers }
  }

  async topics() {
    const { topics } = await this.admin.fetchTopicMetadata()
    return Object.fromEntries(topics.map(each => [each.name, each.partitions.length]))
  }

  async watermarks({ topic, partition }) {
    const found = await this.admin.fetchTopicOffsets(topic)
    const { low, high } = found.find(each => each.partition === partition)
    return [Number(low), Number(high)]
  }

  // Where all records are older it gives the end of the partition, where no record is.
  async offset_for_time({ topic, partition, timestamp_ms }) {
    const [, high] = await this.watermarks({ topic, partition })
    const found = await this.admin.fetchTopicOffsetsByTimestamp(topic, timestamp_ms)
    const offset = Number(found.find(each => each.partition === partition).offset)
    return offset < high ? offset : null
  }

  close() {
    return this.admin.disconnect()
  }
}

const entries = settings => Object.entries(settings).map(([name, value]) => ({ name, value }))

serve(program)
