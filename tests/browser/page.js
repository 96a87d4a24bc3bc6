// What a page has to do to show a run: put into every document that a test opens, and told by its address what to look at.
if (location.hash.startsWith('#watch=')) {
  addEventListener('DOMContentLoaded', async () => {
    const { kind, id, tokens, delay, count = true, ...options } = JSON.parse(decodeURIComponent(location.hash.slice('#watch='.length)))
    const reattach = await import('/client/reattach.js')
    if (delay !== undefined) options.delay = () => delay
    if (tokens) {
      options.token = ({ refresh }) => {
        if (refresh && tokens.length > 1) tokens.shift()
        return tokens[0]
      }
    }
    const mirrors = { run: reattach.RunMirror, session: reattach.SessionMirror }
    const mirror = new mirrors[kind](id, options)
    const applied = {}
    const known = new WeakSet()
    const output = document.createElement('pre')
    document.body.replaceChildren(output)
    const draw = () => {
      const { events, [kind]: shown } = mirror.getSnapshot()
      for (const event of events) {
        if (!count || known.has(event)) continue
        known.add(event)
        applied[event.event_id] = (applied[event.event_id] ?? 0) + 1
      }
      output.textContent = (shown?.messages ?? []).flatMap(({ content }) => content.map(part => part.text ?? '')).join('|')
    }
    mirror.subscribe(draw)
    draw()
    Object.assign(window, { reattach, mirror, applied, output, options })
  })
}
