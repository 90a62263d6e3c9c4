// What the parts of the program of kafkajs have in common.
'use strict'

const { Kafka, logLevel } = require('kafkajs')
const { toBase64 } = require('./lines')

// Errors come wrapped: those of many topics, partitions or groups in a list, and what was tried again as a cause.
const inner = error =>
  error.errors?.[0] ?? error.partitions?.[0]?.error ?? error.groups?.[0]?.error ?? error.cause

function codeOf(error) {
  for (let each = error; each; each = inner(each)) {
    if (each.code > 0) return each.code
  }
  return null
}

function kafka(request, giveUpMs) {
  const pause = request.reconnect_ms_max
  return new Kafka({
    brokers: [request.address],
    logLevel: logLevel.NOTHING,
    retry: { initialRetryTime: pause, maxRetryTime: pause, retries: Math.ceil(giveUpMs / pause) },
  })
}

// Headers of one name are together, because it gives them by name.
function seen(partition, message) {
  const headers = Object.entries(message.headers ?? {}).flatMap(([name, found]) =>
    (Array.isArray(found) ? found : [found]).map(value => [name, toBase64(value)])
  )
  return {
    partition,
    offset: Number(message.offset),
    timestamp_ms: Number(message.timestamp),
    timestamp_type: message.batchContext?.timestampType ?? null,
    key: toBase64(message.key),
    value: toBase64(message.value),
    headers,
  }
}

module.exports = { codeOf, kafka, seen }
