/**
 * Event streams as the WHATWG HTML standard defines them (section 9.2.6): bytes in portions of any size in, dispatched frames out.
 *
 * Two things differ from `EventSource`: a frame remembers whether it carried an `id` of its own, and there is a limit to its size.
 */

/** Characters of one frame; beyond that the stream is not one of ours. */
const MOST = 16 * 1024 * 1024

const LINE_END = /\r\n|\n|\r/g

export class EventStreamParser {
  /** The last reconnection time the server asked for, milliseconds; null before it did. */
  retry = null
  /** What `EventSource` would send as `Last-Event-ID`. */
  lastEventId = ''

  #decoder = new TextDecoder('utf-8') // takes a leading byte order mark away, and holds back half characters
  #line = ''
  #size = 0
  #afterCr = false
  #event = ''
  #data = []
  #id = null

  /**
   * Take in bytes; what they complete.
   *
   * @param {Uint8Array} bytes
   * @returns {{ event: string, data: string, id: string | null }[]} `id` is the frame's own, null where it carried none.
   * @throws {RangeError} A frame is larger than any event can be.
   */
  feed(bytes) {
    let text = this.#decoder.decode(bytes, { stream: true })
    const frames = []
    if (this.#afterCr && text !== '') {
      // The CR ended its line when it came; an LF right after it is the same line's end.
      this.#afterCr = false
      if (text[0] === '\n') text = text.slice(1)
    }
    let start = 0
    for (const end of text.matchAll(LINE_END)) {
      const frame = this.#take(this.#line + text.slice(start, end.index))
      if (frame) frames.push(frame)
      this.#line = ''
      start = end.index + end[0].length
    }
    this.#afterCr = start > 0 && start === text.length && text[start - 1] === '\r'
    this.#line += text.slice(start)
    this.#check(this.#line.length)
    return frames
  }

  #take(line) {
    if (line === '') return this.#dispatch()
    if (line[0] === ':') return null
    const colon = line.indexOf(':')
    const name = colon < 0 ? line : line.slice(0, colon)
    const value = colon < 0 ? '' : line.slice(line[colon + 1] === ' ' ? colon + 2 : colon + 1)
    if (name === 'event') this.#event = value
    else if (name === 'data') {
      this.#data.push(value)
      this.#size += value.length + 1
      this.#check(0)
    } else if (name === 'id' && !value.includes('\0')) this.#id = this.lastEventId = value
    else if (name === 'retry' && /^[0-9]{1,10}$/.test(value)) this.retry = Number(value)
    return null
  }

  #dispatch() {
    const frame = this.#data.length ? { event: this.#event || 'message', data: this.#data.join('\n'), id: this.#id } : null
    this.#event = ''
    this.#data = []
    this.#id = null
    this.#size = 0
    return frame
  }

  #check(more) {
    if (this.#size + more > MOST) throw new RangeError(`a frame of this stream is longer than ${MOST} characters`)
  }
}
