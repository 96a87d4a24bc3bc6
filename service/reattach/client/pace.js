/** How long to wait before trying again. */

const LONGEST = 30_000

/** A pause that doubles with every failure in a row, up to half a minute, and differs from client to client: 50 to 100 % of it. */
export function spread(first, failures) {
  return Math.min(first * 2 ** Math.min(failures - 1, 20), LONGEST) * (0.5 + Math.random() / 2)
}

/** Wait; rejects with the signal's reason when that comes first. */
export function pause(ms, signal) {
  return new Promise((resolve, reject) => {
    const stop = () => (clearTimeout(timer), reject(signal.reason))
    const timer = setTimeout(() => (signal?.removeEventListener('abort', stop), resolve()), ms)
    if (signal?.aborted) stop()
    else signal?.addEventListener('abort', stop, { once: true })
  })
}
