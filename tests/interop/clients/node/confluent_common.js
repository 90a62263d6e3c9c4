// What the producer, the consumer and the admin of @confluentinc/kafka-javascript have in common.
'use strict'

const { within } = require('./lines')

const common = request => ({
  'bootstrap.servers': request.address,
  'reconnect.backoff.max.ms': request.reconnect_ms_max,
  // Clients print what they think of restarts and refusals; the stories check it.
  log_level: 0,
})

// A function that takes a callback, as a promise. Some of them throw.
const call = start =>
  new Promise((resolve, reject) => start((error, value) => (error ? reject(error) : resolve(value))))

const connect = (client, timeout) =>
  within(timeout, 'connect', call(done => client.connect({ timeout }, done)))

module.exports = { call, common, connect }
