// Follows a run with somebody else's client, unmodified, and tells every event it gets, one JSON text a line.
import { createRequire } from 'node:module'

const [, , client, folder, url] = process.argv
const require = createRequire(`${folder}/`)
const say = value => process.stdout.write(`${JSON.stringify(value)}\n`)
const ended = type => ['run.succeeded', 'run.failed', 'run.cancelled'].includes(type)

const clients = {
  eventsource() {
    const { EventSource } = require('eventsource')
    const source = new EventSource(url)
    source.addEventListener('error', () => {
      if (source.readyState === source.CLOSED) say({ end: 'closed' })
    })
    for (const type of ['run.created', 'run.started', 'step.done', 'run.succeeded', 'stream.closing']) {
      source.addEventListener(type, ({ data, lastEventId }) => say({ type, data, id: lastEventId }))
    }
  },
  async 'fetch-event-source'() {
    // It wants to know whether its page is visible; a page always is here.
    globalThis.document = { hidden: false, addEventListener() {}, removeEventListener() {} }
    globalThis.window = globalThis
    const { fetchEventSource, EventStreamContentType } = require('@microsoft/fetch-event-source')
    let over = false
    await fetchEventSource(url, {
      async onopen(response) {
        // 204: nothing is left. Its own check takes that for an error.
        if (response.status !== 204 && !response.headers.get('content-type')?.startsWith(EventStreamContentType)) throw new Error(`${response.status}`)
      },
      onmessage({ event, data, id }) {
        // It hands on what a browser would not: keep-alives, and a reconnection time.
        if (data) say({ type: event, data, id })
        over ||= ended(event)
      },
      onclose() {
        // A complete body before the end of the run would be taken for success by whoever does not look.
        if (!over) throw new Error('closed before the end')
      },
    })
    say({ end: 'resolved' })
  },
}
await clients[client]()
