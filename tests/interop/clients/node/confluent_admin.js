// The admin of @confluentinc/kafka-javascript. It has nothing for settings, and metadata and offsets are asked for
// through a producer and a consumer, as users do.
'use strict'

const kafka = require('@confluentinc/kafka-javascript')
const { call, common, connect } = require('./confluent_common')

// With this the broker takes its own default.
const DEFAULT_REPLICATION_FACTOR = -1

async function openAdmin(request) {
  const self = new Admin()
  self.timeout = request.wait_ms_max
  self.admin = kafka.AdminClient.create(common(request))
  self.consumer = new kafka.KafkaConsumer({ ...common(request), 'group.id': 'required-by-librdkafka' }, {})
  await connect(self.consumer, self.timeout)
  return self
}

class Admin {
  create_topic({ topic, partitions, settings }) {
    const made = {
      topic,
      num_partitions: partitions,
      replication_factor: DEFAULT_REPLICATION_FACTOR,
      config: settings,
    }
    return call(done => this.admin.createTopic(made, this.timeout, done))
  }

  delete_topic({ topic }) {
    return call(done => this.admin.deleteTopic(topic, this.timeout, done))
  }

  add_partitions({ topic, total }) {
    return call(done => this.admin.createPartitions(topic, total, this.timeout, done))
  }

  async delete_records({ topic, partition, before }) {
    const options = { timeout: this.timeout, operationTimeout: this.timeout }
    const [done] = await call(next =>
      this.admin.deleteRecords([{ topic, partition, offset: before }], options, next)
    )
    if (done.error) throw done.error
    return done.lowWatermark
  }

  async cluster() {
    const found = await this.metadata()
    const brokers = Object.fromEntries(found.brokers.map(each => [each.id, `${each.host}:${each.port}`]))
    return { cluster_id: null, controller: null, brokers }
  }

  async topics() {
    const { topics } = await this.metadata()
    return Object.fromEntries(topics.map(each => [each.name, each.partitions.length]))
  }

  metadata() {
    return call(done => this.consumer.getMetadata({ timeout: this.timeout }, done))
  }

  async watermarks({ topic, partition }) {
    const found = await call(done =>
      this.consumer.queryWatermarkOffsets(topic, partition, this.timeout, done)
    )
    return [found.lowOffset, found.highOffset]
  }

  // Where all records are older it gives librdkafka's name for the end, which is a negative number.
  async offset_for_time({ topic, partition, timestamp_ms }) {
    const place = { topic, partition, offset: timestamp_ms }
    const [found] = await call(done => this.consumer.offsetsForTimes([place], this.timeout, done))
    return found.offset < 0 ? null : found.offset
  }

  async close() {
    this.admin.disconnect()
    await call(done => this.consumer.disconnect(done))
  }
}

module.exports = { openAdmin }
