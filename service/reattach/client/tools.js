/** The tool calls of a run and the resources they changed, from its `tool.*` events. A payload that does not fit is not projected. */
import { freeze, place, put } from './frozen.js'

const isText = value => typeof value === 'string'
const isOptionalText = value => value === undefined || value === null || isText(value)
const known = (from, names) => Object.fromEntries(names.filter(name => Object.hasOwn(from, name)).map(name => [name, from[name]]))

function fits(p) {
  return typeof p === 'object' && p !== null && !Array.isArray(p) && isText(p.tool_call_id) && isText(p.tool)
}

function find(list, id) {
  return list.findLastIndex(call => call.tool_call_id === id)
}

/** All calls, and of those nobody knows the effect of. */
function changed(run, at, call) {
  const before = at < 0 ? undefined : run.tools[at]
  const tools = place(run.tools, at, freeze(call))
  if (call.status !== 'unresolved' && before?.status !== 'unresolved') return { tools }
  const open = tools.filter(({ status }) => status === 'unresolved')
  return { tools, unresolved: freeze(open.map(({ tool_call_id, tool, why }) => ({ tool_call_id, tool, why: why || 'unknown' }))) }
}

/** `tool.requested`: a call begins, or is tried again. */
export function request(run, { payload: p, occurred_at }) {
  if (!fits(p)) return {}
  const call = { tool_call_id: p.tool_call_id, tool: p.tool, status: 'requested', requested_at: occurred_at, ...known(p, ['arguments']) }
  return changed(run, find(run.tools, p.tool_call_id), call)
}

/** `tool.completed`, `tool.failed`, `tool.unresolved`: what became of a call. A resource keeps the version that was reported last. */
export function settle(run, { payload: p, occurred_at }, status) {
  if (!fits(p) || !['receipt_id', 'result_version', 'why'].every(name => isOptionalText(p[name]))) return {}
  const at = find(run.tools, p.tool_call_id)
  const call = {
    tool_call_id: p.tool_call_id,
    tool: p.tool,
    status,
    ...(at < 0 ? {} : known(run.tools[at], ['requested_at', 'arguments'])),
    ...known(p, ['receipt_id', 'result_version', 'why'].filter(name => isText(p[name]))),
    ...known(p, ['result', 'error']),
    ...(status === 'unresolved' ? {} : { finished_at: occurred_at }),
  }
  return { ...changed(run, at, call), ...(status === 'completed' && versions(run.resources, p.result_version ?? '')) }
}

function versions(resources, version) {
  const colon = version.lastIndexOf(':')
  const [resource, current] = [version.slice(0, Math.max(colon, 0)), version.slice(colon + 1)]
  return resource && current ? { resources: put(resources, { [resource]: current }) } : {}
}
