/**
 * Lists that stay up to date without a storm of requests: one at a time, only while somebody looks, less often while nothing happens, and
 * further apart while the service does not answer.
 */

const BUSY = 2000
const IDLE = 5000
const LONGEST = 30_000

export class Poll {
  #load
  #shown
  #failed
  #timer = 0
  #request = null
  #failures = 0

  /**
   * @param {(signal: AbortSignal) => Promise<any>} load Asks once.
   * @param {(answer: any) => boolean} shown Shows an answer; whether more is to be expected soon.
   * @param {(error: any) => void} failed Shows why there is none.
   */
  constructor(load, shown, failed) {
    this.#load = load
    this.#shown = shown
    this.#failed = failed
    document.addEventListener('visibilitychange', this.#woken)
    addEventListener('online', this.#woken)
    this.now()
  }

  /** Ask now, whatever is under way. */
  async now() {
    clearTimeout(this.#timer)
    this.#request?.abort()
    const request = (this.#request = new AbortController())
    let pause
    try {
      const answer = await this.#load(request.signal)
      if (request.signal.aborted) return
      this.#failures = 0
      pause = this.#shown(answer) ? BUSY : IDLE
    } catch (error) {
      if (request.signal.aborted) return
      this.#failures += 1
      this.#failed(error)
      pause = Math.min(LONGEST, BUSY * 2 ** (this.#failures - 1))
    }
    this.#request = null
    // Pages that were opened together do not ask together.
    this.#timer = setTimeout(() => document.hidden || this.now(), pause * (0.8 + 0.4 * Math.random()))
  }

  /** End it. */
  close() {
    clearTimeout(this.#timer)
    this.#request?.abort()
    document.removeEventListener('visibilitychange', this.#woken)
    removeEventListener('online', this.#woken)
  }

  #woken = () => {
    if (!document.hidden && this.#request === null) this.now()
  }
}
