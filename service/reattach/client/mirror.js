/**
 * What a page knows of a run or a session: the snapshot from the server, every later event folded onto it once, a window of the events.
 *
 * The only truth is the server's. An event is taken if it is the very next one; an earlier one was here already; a later one means that
 * something was missed, and then the snapshot is asked for, and what came meanwhile is folded onto that. Nothing is ever guessed.
 */
import { ReattachError } from './errors.js'
import { freeze, put } from './frozen.js'
import { spread } from './pace.js'
import * as storage from './storage.js'

const WINDOW = 500
/** Frames that may wait for a snapshot; of more, the snapshot will know. */
const MOST_HELD = 10_000
/** Snapshots that did not close a gap before what is held is given up for a newer one. */
const PATIENCE = 4

const positionOf = frame => Number(frame.id.slice(frame.id.lastIndexOf(':') + 1))

export class Mirror {
  #model
  #http
  #connection
  #limit
  #stored
  #state = null
  #view = null
  #listeners = new Set()
  #held = []
  #loading = false
  #wanted = null
  #notBefore = 0
  #hurry = () => {}
  #seen = 0
  #wasLive = false
  #closing = new AbortController()

  /**
   * @param {object} model What is mirrored: its `name` in the view, the `path` of its snapshot, how events are read and folded,
   *   whether it is `over`, and whether it `lacks` what only a new snapshot has.
   * @param {import('./http.js').Http} http
   * @param {{ window?: number }} options
   * @param {(sink: object) => import('./connection.js').Connection} connect Makes the connection.
   */
  constructor(model, http, { window = WINDOW }, connect) {
    this.#model = model
    this.#http = http
    this.#limit = window
    this.#stored = storage.read(http.base + model.path)
    this.#connection = connect({
      cursor: () => (this.#state ? String(this.#state.sequence) : this.#stored),
      frames: frames => this.#take(frames),
      status: status => this.#connected(status),
      lost: () => this.#lost(),
      behind: position => this.#behind(position),
      woken: () => this.#hurry(),
      asleep: () => this.#remember(),
    })
    const counters = freeze({ events: 0, resumes: 0, duplicates: 0, gaps: 0 })
    const { status } = this.#connection
    this.#view = Object.freeze({ [model.name]: null, events: freeze([]), connection: status, counters, loading: true, error: null })
  }

  /** Call `listener` after every change; the answer stops that. */
  subscribe = listener => {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  /** What is known now: frozen, the same object until something changes, and sharing with the one before what did not. */
  getSnapshot = () => this.#view

  /** Look at once whether all is well, e.g. when a person asks for it. */
  nudge() {
    this.#connection.nudge()
  }

  /** Ask for the snapshot now, and connect again where that was refused. */
  reload() {
    this.#connection.open()
    this.#load()
  }

  /** Lose the connection, and find none for so many milliseconds: to see what a page does then. The run does not notice. */
  cut(ms) {
    this.#connection.cut(ms)
  }

  /** Stop looking. The run goes on. */
  close() {
    this.#closing.abort(new ReattachError('closed', 'this page looks no more'))
    this.#remember()
    this.#connection.close()
    this.#listeners.clear()
  }

  /** Put earlier events before the window, which grows by them; how many were still kept. */
  async earlier(count = 200) {
    const { at, earlier } = this.#model
    const first = () => (this.#view.events.length ? at(this.#view.events[0]) : (this.#state?.sequence ?? 0) + 1)
    const found = await earlier(this.#http, Math.max(0, first() - 1 - count), first(), this.#closing.signal)
    const before = found.filter(event => at(event) < first())
    // The window may have moved on meanwhile; with a hole between, these are of no use.
    if (!before.length || at(before.at(-1)) !== first() - 1) return 0
    this.#limit += before.length
    this.#publish({ events: Object.freeze([...before, ...this.#view.events]) })
    return before.length
  }

  #publish(changes) {
    const view = put(this.#view, changes)
    if (view === this.#view) return
    this.#view = view
    for (const listener of [...this.#listeners]) listener()
  }

  #connected(connection) {
    if (!this.#view) return
    const { counters } = this.#view
    const live = connection.state === 'live' && this.#view.connection.state !== 'live'
    const resumes = counters.resumes + (live && this.#wasLive ? 1 : 0)
    this.#wasLive ||= live
    this.#publish({ connection, counters: put(counters, { resumes }) })
  }

  #take(frames) {
    if (this.#closing.signal.aborted) return
    if (this.#loading || !this.#state) return this.#hold(frames)
    let { sequence } = this.#state
    let duplicates = 0
    const fresh = []
    for (const [index, frame] of frames.entries()) {
      const position = positionOf(frame)
      if (position > sequence + 1) {
        this.#apply(fresh, duplicates, 1)
        this.#hold(frames.slice(index))
        return this.#load()
      }
      if (position <= sequence) duplicates++
      else fresh.push(this.#model.read(frame))
      sequence = Math.max(sequence, position)
    }
    this.#apply(fresh, duplicates)
  }

  #hold(frames) {
    this.#held.push(...frames)
    if (this.#held.length > MOST_HELD) this.#giveUp()
  }

  #giveUp() {
    for (const frame of this.#held) this.#seen = Math.max(this.#seen, positionOf(frame))
    this.#held = []
  }

  #apply(fresh, duplicates = 0, gaps = 0) {
    const { events, counters } = this.#view
    const counted = { events: counters.events + fresh.length, duplicates: counters.duplicates + duplicates, gaps: counters.gaps + gaps }
    const changes = { counters: put(counters, counted) }
    if (fresh.length) {
      changes[this.#model.name] = this.#state = this.#model.fold(this.#state, fresh)
      changes.events = Object.freeze([...events, ...fresh].slice(-this.#limit))
    }
    this.#publish(changes)
    if (this.#state && this.#model.over(this.#state)) this.#connection.close('ended')
    if (fresh.length && this.#model.lacks?.(this.#state)) this.#load(true)
  }

  /** Somebody else has seen more than was heard here. */
  #behind(position) {
    this.#seen = Math.max(this.#seen, position)
    if (this.#loading || !this.#state || this.#state.sequence >= this.#seen) return
    this.#apply([], 0, 1)
    this.#load()
  }

  /** The server knows no way on from here. Its word counts, also where it knows less than this page: then it has lost something. */
  #lost() {
    this.#seen = 0
    this.#held = []
    this.#stored = undefined
    if (this.#state) this.#load(true)
  }

  #load(force = false) {
    this.#wanted = { force: force || Boolean(this.#wanted?.force) }
    if (!this.#loading) this.#loop()
  }

  async #loop() {
    this.#loading = true
    this.#publish({ loading: true })
    for (let round = 0; this.#wanted && !this.#closing.signal.aborted; round++) {
      if (round) await this.#pause(Math.max(spread(250, round), this.#notBefore - Date.now()))
      const { force } = this.#wanted
      this.#wanted = null
      if (round % PATIENCE === PATIENCE - 1) this.#giveUp()
      const { signal } = this.#closing
      const etag = this.#state && !force ? `"${this.#state.sequence}"` : undefined
      try {
        this.#adopt(await this.#http.ask(this.#model.path, { signal, etag, patience: 0 }), force)
      } catch (error) {
        this.#failed(error)
      }
    }
    // In the same breath as the last look at what is held, or a frame that comes in between is held for ever.
    this.#loading = false
    if (!this.#closing.signal.aborted) this.#publish({ loading: false })
  }

  #pause(ms) {
    return new Promise(resolve => {
      const timer = setTimeout(resolve, ms)
      this.#hurry = () => (clearTimeout(timer), resolve())
    })
  }

  #failed(error) {
    if (this.#closing.signal.aborted) return
    const told = error instanceof ReattachError ? error : new ReattachError('broken', String(error?.message ?? error), { cause: error })
    this.#notBefore = Date.now() + (told.retryAfter ?? 0)
    this.#publish({ error: told.told })
    if (told.again) this.#wanted ??= { force: false }
    else this.#connection.close('refused', told)
  }

  /** @param found The snapshot; null where nothing is newer than what is here. */
  #adopt(found, force) {
    const before = this.#state
    const stale = found && before && !force && found.sequence < before.sequence
    this.#state = found && !stale ? freeze(this.#model.adopt(found)) : before
    const { sequence } = this.#state
    const left = this.#held.filter(frame => positionOf(frame) > sequence)
    // A reader that lags behind, or more was missed than this snapshot makes good.
    const gap = stale || sequence < this.#seen || (left.length > 0 && positionOf(left[0]) !== sequence + 1)
    const changes = { [this.#model.name]: this.#state, error: null }
    if (before?.sequence !== sequence) changes.events = freeze([])
    this.#publish(changes)
    if (gap) this.#wanted ??= { force: false }
    else this.#settle(left)
  }

  #settle(left) {
    const { sequence } = this.#state
    const hole = left.findIndex((frame, index) => positionOf(frame) !== sequence + 1 + index)
    const next = hole < 0 ? left : left.slice(0, hole)
    this.#held = left.slice(next.length)
    if (this.#held.length) this.#wanted ??= { force: false }
    this.#apply(next.map(this.#model.read))
    if (!this.#model.over(this.#state)) this.#connection.open()
  }

  #remember() {
    if (this.#state) storage.write(this.#http.base + this.#model.path, this.#state.sequence)
  }
}
