/** Reattach in a page: runs and sessions that survive refresh, sleep, lost networks and renewed tokens. No dependency, no build step. */
export { answer, cancel, start } from './commands.js'
export { Connection } from './connection.js'
export { ReattachError } from './errors.js'
export { begin, fold, TERMINAL_STATES, TERMINAL_TYPES } from './fold.js'
export { Http } from './http.js'
export { RunMirror } from './run.js'
export { foldSession, SessionMirror } from './session.js'
export { EventStreamParser } from './sse.js'
