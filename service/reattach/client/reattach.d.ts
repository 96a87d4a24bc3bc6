/** Reattach in a page: runs and sessions that survive refresh, sleep, lost networks and renewed tokens. */

/** A JSON value. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [member: string]: Json }

export type State = 'queued' | 'running' | 'waiting' | 'succeeded' | 'failed' | 'cancelled'
export type Disposition = 'cancelled_before_effect' | 'cancelled_after_effect' | 'cancellation_pending' | 'already_terminal'

export interface Message {
  readonly message_id: string
  readonly role: string
  readonly status: 'streaming' | 'completed' | 'interrupted'
  /** Whatever the agent made of it; written text is `{ type: 'text', text }`. */
  readonly content: readonly Json[]
}

export interface Tool {
  readonly tool_call_id: string
  readonly tool: string
  readonly status: 'requested' | 'completed' | 'failed' | 'unresolved'
  readonly requested_at?: string
  readonly finished_at?: string
  readonly arguments?: Json
  readonly receipt_id?: string
  readonly result_version?: string
  readonly result?: Json
  readonly error?: Json
  readonly why?: string
}

export interface Cancel {
  readonly version: number
  readonly requested_at: string | null
  readonly by: string | null
  readonly reason: string | null
  readonly disposition: Disposition | null
}

export interface Waiting {
  readonly reason: string
  readonly wait_id: string
  readonly since: string
  readonly expires_at: string | null
  readonly prompt: string | null
}

/** A run at one sequence, as `GET /agent-runs/{run_id}` gives it. Times are RFC 3339. */
export interface Run {
  readonly run_id: string
  readonly tenant: string
  readonly initiator: string
  readonly session_id: string | null
  readonly parent_run_id: string | null
  readonly agent: string
  readonly resource_scope: string
  readonly release_id: string
  readonly model_policy: string | null
  readonly tool_catalog: string | null
  readonly input_version: string | null
  readonly input: Json
  readonly metadata: Json
  readonly state: State
  readonly attempt: number
  readonly sequence: number
  readonly earliest_sequence: number
  readonly cancel: Cancel
  readonly waiting: Waiting | null
  readonly outcome: Json
  readonly error: Json
  readonly created_at: string | null
  readonly started_at: string | null
  readonly last_activity_at: string | null
  readonly finished_at: string | null
  /** Null after an end that was watched live: the snapshot has it, see `Mirror.reload`. */
  readonly events_expire_at: string | null
  /** As `events_expire_at`. */
  readonly expires_at: string | null
  readonly messages: readonly Message[]
  readonly tools: readonly Tool[]
  readonly resources: { readonly [resource: string]: string }
  readonly unresolved: readonly { readonly tool_call_id: string; readonly tool: string; readonly why: string }[]
  readonly links: { readonly [name: string]: string }
}

/** An event as clients receive it. */
export interface RunEvent {
  readonly run_id: string
  readonly sequence: number
  readonly event_id: string
  readonly release_id: string
  readonly type: string
  readonly occurred_at: string
  readonly resource_scope: string
  readonly payload: { readonly [member: string]: Json }
}

export interface Options {
  /** Where the service is; the page's own origin by default. */
  base?: string
  /** The bearer token; asked before every request, and with `refresh` once after each 401. Without it: the browser's cookie, if any. */
  token?: (about: { refresh: boolean }) => string | null | undefined | Promise<string | null | undefined>
  /** A ticket for reading one run, where there is no token. */
  ticket?: (about: { refresh: boolean }) => string | null | undefined | Promise<string | null | undefined>
  /** Whether tabs share one connection: by default with those of the same token's owner. A text names who else may share. */
  share?: boolean | string
  /** Milliseconds of silence after which a connection is taken for dead: more than twice the service's `--keepalive`. 40000 by default. */
  stall?: number
  /** Chooses the pause before the next attempt, milliseconds; undefined leaves it to the line. */
  delay?: (about: { failures: number; reason: string; retry: number; retryAfter: number | null }) => number | undefined
  /** How many of the latest events a mirror keeps; 500 by default. */
  window?: number
  fetch?: typeof globalThis.fetch
  credentials?: RequestCredentials
}

export interface CommandOptions extends Options {
  /** The `Idempotency-Key`; made anew for each call by default. Give your own where a click must stay one across a refresh. */
  key?: string
  signal?: AbortSignal
  /** Milliseconds after which it is not tried again; 60000 by default. */
  patience?: number
}

export class ReattachError extends Error {
  /** The service's own code, or `unreachable`, `unexpected`, `closed`, `broken`. */
  readonly code: string
  /** 0 where no answer came. */
  readonly status: number
  /** Milliseconds. */
  readonly retryAfter: number | null
  /** The problem document (RFC 9457). */
  readonly problem: { readonly [member: string]: Json } | null
  /** Whether the same request may succeed later. */
  readonly again: boolean
  /** Whether a cursor was refused. */
  readonly isCursor: boolean
  readonly told: ToldError
}

/** An error as plain data. */
export interface ToldError {
  readonly code: string
  readonly status: number
  readonly detail: string
  readonly problem: { readonly [member: string]: Json } | null
}

export interface ConnectionStatus {
  /**
   * `retrying` and `offline` go on by themselves at `retryAt`. `refused` needs somebody: see `error`, then `reload()`. `paused`: the page is
   * asleep. `ended`: nothing more will come.
   */
  readonly state: 'idle' | 'connecting' | 'live' | 'retrying' | 'offline' | 'paused' | 'refused' | 'ended' | 'closed'
  /** Whether this tab has the connection, its own or for all. */
  readonly leader: boolean
  /** Whether tabs share it. */
  readonly shared: boolean
  /**
   * Why the last one ended: `stalled`, `closed`, `cut`, `unreachable`, a code of the service, or what the service said on closing: `drain`,
   * `lifetime`, `unauthorized`, `slow_consumer`, `unavailable`.
   */
  readonly reason: string | null
  /** Milliseconds since the epoch. */
  readonly retryAt: number | null
  /** In a row. */
  readonly failures: number
  readonly error: ToldError | null
}

export interface Counters {
  /** Applied by this page, each once. */
  readonly events: number
  /** Connections after the first. */
  readonly resumes: number
  /** Events that came again and were dropped. */
  readonly duplicates: number
  /** Missed events, made good by a snapshot. */
  readonly gaps: number
}

interface MirrorView<E> {
  /** The latest events, contiguous, at most `window`. */
  readonly events: readonly E[]
  readonly connection: ConnectionStatus
  readonly counters: Counters
  /** Whether a snapshot is being asked for. */
  readonly loading: boolean
  /** Why the last snapshot could not be had. */
  readonly error: ToldError | null
}

export interface RunView extends MirrorView<RunEvent> {
  /** Null until the first snapshot. */
  readonly run: Run | null
}

declare abstract class Mirror<View> {
  /** Call `listener` after every change; the answer stops that. Bound: pass it on as it is. */
  readonly subscribe: (listener: () => void) => () => void
  /** What is known: frozen, the same object until something changes, sharing with the one before what did not. Bound. */
  readonly getSnapshot: () => View
  /** Look at once whether all is well. */
  nudge(): void
  /** Ask for the snapshot, and connect again where that was refused. */
  reload(): void
  /** Lose the connection, and find none for so many milliseconds: to see what a page does then. */
  cut(ms: number): void
  /** Put earlier events before the window, which grows by them; how many were still kept. */
  earlier(count?: number): Promise<number>
  /** Stop looking. The run goes on. */
  close(): void
}

/** A run, followed to its end. */
export class RunMirror extends Mirror<RunView> {
  constructor(runId: string, options?: Options)
}

/** A run as a session lists it. */
export type ListedRun = Pick<Run, 'run_id' | 'agent' | 'state' | 'sequence'> & Partial<Run>

/** A session at one sequence of its own, as `GET /sessions/{session_id}` gives it. */
export interface Session {
  readonly session_id: string
  readonly sequence: number
  readonly runs: readonly ListedRun[]
  /** Ids of the runs that have not ended. */
  readonly active: readonly string[]
  readonly messages: readonly (Message & { readonly run_id: string })[]
  readonly [member: string]: any
}

export interface SessionView extends MirrorView<RunEvent & { readonly session_sequence: number }> {
  /** Null until the first snapshot. */
  readonly session: Session | null
}

/** A session: all its runs over one connection. */
export class SessionMirror extends Mirror<SessionView> {
  constructor(sessionId: string, options?: Options)
  /** A run of this session, over the session's connection. Close it when it is looked at no more. */
  run(runId: string): Mirror<RunView>
}

/** Fold a session's events onto its snapshot. */
export function foldSession(session: Session, events: Iterable<RunEvent & { readonly session_sequence: number }>): Session

/** One event stream, kept up and shared between tabs: what mirrors are made of. */
export class Connection {
  readonly status: ConnectionStatus
  constructor(path: string, http: Http, options: Options & { isLast?: (frame: Frame) => boolean }, sink: Sink)
  open(): void
  nudge(): void
  cut(ms: number): void
  close(): void
}

export interface Frame {
  readonly event: string
  readonly data: string
  /** The frame's own. */
  readonly id: string | null
}

/** Who listens to a `Connection`. */
export interface Sink {
  /** The last event it has; null for none, undefined while it does not know yet (then `open` is called again). */
  cursor(): string | null | undefined
  /** Events in order; with tabs that share, some may come twice or be missing. */
  frames(frames: readonly Frame[]): void
  status(status: ConnectionStatus): void
  /** The cursor was refused: take the snapshot, then `open` again. */
  lost(error: ReattachError): void
  /** Another tab has the events up to here. */
  behind?(sequence: number): void
  woken?(): void
  asleep?(): void
}

/** Requests to the service. */
export class Http {
  constructor(options?: Options)
  readonly base: string
  /** @throws {ReattachError} */
  ask(
    path: string,
    about?: { body?: unknown; key?: string; query?: Record<string, string | number>; signal?: AbortSignal; patience?: number; etag?: string },
  ): Promise<any>
}

/** The format of event streams; bytes in, frames out. */
export class EventStreamParser {
  /** Milliseconds, null before the server said. */
  retry: number | null
  lastEventId: string
  feed(bytes: Uint8Array): Frame[]
}

/** The snapshot before the first event, from what no event changes. */
export function begin(run: Partial<Run>): Run
/** Fold events onto a snapshot, which stays as it is. */
export function fold(
  snapshot: Run,
  events: Iterable<Pick<RunEvent, 'sequence' | 'type' | 'occurred_at' | 'payload'>>,
  retention?: { events_ms: number; run_ms: number },
): Run
export const TERMINAL_TYPES: readonly string[]
export const TERMINAL_STATES: readonly string[]

export interface NewRun {
  agent: string
  input: unknown
  session_id?: string
  parent_run_id?: string
  resource_scope?: string
  release_id?: string
  model_policy?: string
  tool_catalog?: string
  input_version?: string
  metadata?: object
  retention?: object
}

export interface CancelAnswer {
  readonly run_id: string
  readonly state: State
  readonly sequence: number
  /** What really happened. */
  readonly disposition: Disposition
  readonly cancel: Cancel
  readonly receipts: readonly { tool_call_id: string; tool: string; receipt_id: string | null; result_version: string | null }[]
  readonly resources: { readonly [resource: string]: string }
  readonly outcome: Json
  readonly error: Json
}

/** Start a run. @throws {ReattachError} */
export function start(request: NewRun, options?: CommandOptions): Promise<Run>
/** Ask a run to stop; nothing else does. `wait`: seconds, 10 by default. @throws {ReattachError} */
export function cancel(runId: string, about?: { reason?: string; wait?: number }, options?: CommandOptions): Promise<CancelAnswer>
/** Answer a run that waits. @throws {ReattachError} */
export function answer(
  runId: string,
  given: { wait_id: string; value: unknown },
  options?: CommandOptions,
): Promise<{ run_id: string; wait_id: string; sequence: number; event_id: string }>
