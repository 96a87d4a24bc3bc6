/**
 * The tabs of one browser that want the same stream: one of them leads and has the connection, the others hear what it hears.
 *
 * Who leads holds a Web Lock, which the browser hands to the next tab when this one closes, crashes or lets go. A leader that was stopped
 * without knowing holds it still; it is robbed of it once it has said nothing for too long. Exactness does not depend on any of this: every
 * tab checks the sequence of what it hears.
 */

/** How long a leader that may just have woken up with everybody else gets to say that it is there. */
const ANSWER = 2000

export class Tabs {
  #name
  #patience
  #on
  #channel = null
  #queue = null
  #release = null
  #heardAt = 0
  #timer = null

  /** Whether this tab leads. */
  leading = false

  /** Whether this browser can share at all. */
  static get possible() {
    return Boolean(globalThis.document && globalThis.navigator?.locks && globalThis.BroadcastChannel)
  }

  /**
   * @param {string} name What is shared.
   * @param {number} patience Milliseconds that a leader may be silent.
   * @param {{ lead: () => void, follow: () => void, hear: (message: any) => void }} on
   */
  constructor(name, patience, on) {
    this.#name = name
    this.#patience = patience
    this.#on = on
  }

  /** Take part: hear what is said from now on, and lead when it is this tab's turn. */
  join() {
    if (this.#queue) return
    this.#channel = new BroadcastChannel(this.#name)
    this.#channel.onmessage = ({ data }) => this.#hear(data)
    this.#line({})
    this.say({ kind: 'hello' })
    this.#watch()
  }

  /** Take no part any more; the next tab leads. */
  leave() {
    clearTimeout(this.#timer)
    this.leading = false
    this.#queue?.abort()
    this.#queue = null
    this.#release?.()
    this.#release = null
    this.#channel?.close()
    this.#channel = null
  }

  /** Tell the others. */
  say(message) {
    this.#channel?.postMessage(message)
  }

  #line(options) {
    const queue = (this.#queue = new AbortController())
    const mine = () => this.#queue === queue
    // A lock is stolen without waiting, so there is nothing a signal could call back; the two exclude each other.
    const asked = options.steal ? options : { signal: queue.signal }
    navigator.locks
      .request(this.#name, asked, () => (mine() ? this.#lead() : undefined))
      .catch(error => {
        if (!mine() || error?.name !== 'AbortError') return
        // Robbed: another tab took this one for dead.
        this.leading = false
        this.#release = null
        this.#on.follow()
        this.#line({})
        this.say({ kind: 'hello' })
        this.#heardAt = Date.now()
        this.#watch()
      })
  }

  #lead() {
    clearTimeout(this.#timer)
    this.leading = true
    const held = new Promise(resolve => (this.#release = resolve))
    this.#on.lead()
    return held
  }

  #hear(message) {
    // The others' greetings are no sign that anybody leads.
    if (message.kind !== 'hello' && message.kind !== 'nudge' && message.kind !== 'cut') this.#heardAt = Date.now()
    this.#on.hear(message)
  }

  #watch() {
    clearTimeout(this.#timer)
    const queue = this.#queue
    this.#heardAt ||= Date.now()
    const look = () => {
      if (this.leading || this.#queue !== queue) return
      const silent = Date.now() - this.#heardAt
      if (silent < this.#patience) return this.#later(look, (this.#patience - silent) * (1 + Math.random() / 4))
      this.say({ kind: 'hello' })
      this.#later(() => this.#rob(queue, look), Math.min(ANSWER, this.#patience / 2) * (1 + Math.random() / 2))
    }
    this.#later(look, this.#patience)
  }

  #later(act, ms) {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(act, ms)
  }

  #rob(queue, look) {
    if (this.leading || this.#queue !== queue) return
    if (Date.now() - this.#heardAt < this.#patience) return look()
    queue.abort()
    this.#line({ steal: true })
  }
}
