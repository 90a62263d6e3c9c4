// The program's side of the protocol that tests/support/clients/remote.py describes: a request is a line of JSON
// on the standard input, and its answer is a line of JSON on the standard output.
'use strict'

const readline = require('node:readline')

// Bytes are base64 in JSON, and null stays null.
const fromBase64 = text => (text === null ? null : Buffer.from(text, 'base64'))
const toBase64 = bytes => (bytes === null ? null : bytes.toString('base64'))

// Rejects when it takes longer than the time for one operation.
function within(milliseconds, what, promise) {
  let timer
  const timeout = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what}: not within ${milliseconds} ms`)), milliseconds)
  })
  return Promise.race([promise, timeout]).finally(() => clearTimeout(timer))
}

// Answers one request after the other, and at the end of the input closes what was opened. `program` has an
// operation for everything that needs nothing opened, and one for each thing that can be opened (open_producer and
// others), which gives an object with the operations of what is opened and a close(); codeOf(error) is
// Kafka's number of an error, or null.
async function serve(program) {
  let opened = program
  const answer = async request => {
    const operation = opened[request.op]
    if (operation === undefined) throw new Error(`unknown operation ${request.op}`)
    const value = await operation.call(opened, request)
    if (!request.op.startsWith('open_')) return value
    opened = value
    return null
  }
  for await (const line of readline.createInterface({ input: process.stdin })) {
    let said
    try {
      said = { ok: (await answer(JSON.parse(line))) ?? null }
    } catch (error) {
      said = { error: refusal(program, error) }
    }
    process.stdout.write(JSON.stringify(said) + '\n')
  }
  if (opened !== program) await opened.close()
  process.exit(0)
}

const refusal = (program, error) => ({ code: program.codeOf(error), text: `${error.message}` })

module.exports = { fromBase64, refusal, serve, toBase64, within }
