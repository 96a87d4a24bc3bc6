/**
 * The events of one run by their sequence, of which only a bounded part is held: what was looked at last, and what came in last.
 */

import { eventsPage, exactEvent } from './api.js'
import { line } from './text.js'

const PAGE = 100
const PAGES = 40
/** Payloads of more characters are not held; they are asked for again when somebody opens them. */
const HELD = 2000

/** Where a page of lines could not be had, it is asked for again after so many milliseconds. */
const AGAIN = 2000

/** @typedef {{sequence: number, type: string, at: string, preview: string, event: any | null}} Line */

export class LogSource {
  #runId
  #changed
  #pages = new Map()
  #loading = new Set()
  #abort = new AbortController()

  /**
   * @param {string} runId
   * @param {() => void} changed Called when lines have arrived.
   */
  constructor(runId, changed) {
    this.#runId = runId
    this.#changed = changed
  }

  /** Lines held now. */
  get held() {
    let sum = 0
    for (const page of this.#pages.values()) sum += page.lines.size
    return sum
  }

  /**
   * One line: it, `"gone"` when it is no longer kept, or undefined while it is being asked for.
   *
   * @param {number} sequence
   * @param {number} latest The run's sequence.
   * @returns {Line | "gone" | undefined}
   */
  at(sequence, latest) {
    const number = Math.floor((sequence - 1) / PAGE)
    const page = this.#pages.get(number)
    const found = page?.lines.get(sequence)
    if (found) return this.#used(number, page, found)
    if (page && sequence <= page.complete) return 'gone'
    this.#load(number, latest)
    return undefined
  }

  /** Take in events that came live. */
  put(events) {
    for (const event of events) {
      const number = Math.floor((event.sequence - 1) / PAGE)
      this.#page(number).lines.set(event.sequence, held(event))
    }
    this.#trim()
  }

  /** One whole event, exactly as it is kept. */
  whole(sequence) {
    return exactEvent(this.#runId, sequence, this.#abort.signal)
  }

  /** Give up what is under way. */
  close() {
    this.#abort.abort()
  }

  #used(number, page, found) {
    // A map keeps its order: what was used last is at its end.
    this.#pages.delete(number)
    this.#pages.set(number, page)
    return found
  }

  #page(number) {
    let page = this.#pages.get(number)
    if (!page) this.#pages.set(number, (page = { lines: new Map(), complete: 0 }))
    return page
  }

  async #load(number, latest) {
    if (this.#loading.has(number)) return
    this.#loading.add(number)
    const last = (number + 1) * PAGE
    try {
      const after = Math.max(number * PAGE, this.#pages.get(number)?.complete ?? 0)
      const { events } = await eventsPage(this.#runId, after, PAGE, this.#abort.signal)
      const page = this.#page(number)
      for (const event of events) if (event.sequence <= last) page.lines.set(event.sequence, held(event))
      // Up to here the service has said what there is; what is not among it is no longer kept.
      page.complete = Math.max(page.complete, Math.min(last, Math.max(latest, events.at(-1)?.sequence ?? 0)))
      this.#trim()
    } catch (error) {
      const earliest = error.code === 'cursor_expired' && error.problem?.earliest_sequence
      if (earliest) this.#page(number).complete = Math.min(last, earliest - 1)
      else await pause(AGAIN)
    }
    this.#loading.delete(number)
    if (!this.#abort.signal.aborted) this.#changed()
  }

  #trim() {
    for (const number of this.#pages.keys()) {
      if (this.#pages.size <= PAGES) return
      this.#pages.delete(number)
    }
  }
}

/** @returns {Line} */
function held(event) {
  const preview = line(event.payload, 400)
  const small = preview.length < 400 && JSON.stringify(event).length <= HELD
  return { sequence: event.sequence, type: event.type, at: event.occurred_at, preview, event: small ? event : null }
}

function pause(ms) {
  return new Promise(resolve => setTimeout(resolve, ms))
}
