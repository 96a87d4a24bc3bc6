/**
 * What happens to a page: it is shown again, gets its network back, is frozen, is put aside with its whole state and taken out again.
 *
 * @param {{ wake: () => void, sleep: () => void, rise: () => void }} on `wake`: look at once whether all is well. `sleep`: nothing will run
 *   from now on, let go of what others wait for. `rise`: it was asleep.
 * @returns {() => void} Stops watching.
 */
export function watchPage({ wake, sleep, rise }) {
  const page = globalThis.document
  if (!page || !globalThis.addEventListener) return () => {}
  const listeners = [
    [globalThis, 'online', wake],
    [globalThis, 'pagehide', sleep],
    [globalThis, 'pageshow', event => event.persisted && rise()],
    [page, 'visibilitychange', () => page.visibilityState === 'visible' && wake()],
    [page, 'freeze', sleep],
    [page, 'resume', rise],
  ]
  for (const [target, type, listener] of listeners) target.addEventListener(type, listener)
  return () => {
    for (const [target, type, listener] of listeners) target.removeEventListener(type, listener)
  }
}
