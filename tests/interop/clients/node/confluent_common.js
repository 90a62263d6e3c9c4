// What the parts of the program of @confluentinc/kafka-javascript have in common.
'use strict'

const { toBase64, within } = require('./lines')

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

function seen(message) {
  const headers = (message.headers ?? []).flatMap(Object.entries)
  return {
    partition: message.partition,
    offset: message.offset,
    timestamp_ms: message.timestamp,
    // It does not show who has set the time.
    timestamp_type: null,
    key: toBase64(message.key),
    value: toBase64(message.value),
    headers: headers.map(([name, bytes]) => [name, toBase64(bytes)]),
  }
}

module.exports = { call, common, connect, seen }
