// SPDX-License-Identifier: Apache-2.0
// What a span is coloured by. The runtime's two categories hold everything from an execution to a DMA, so that their
// spans are told apart by name; any other category is a group by itself.

const kRuntimeCategories = new Set(['neuron_rt', 'neuron_hw']);
const kGroups: [RegExp, string][] = [
  [/barrier|sync/, 'barrier'],
  [/wait|semaphore|block/, 'wait'],
  [/^cc_|^enc_|collective|all_?reduce|all_?gather|reduce_?scatter|all_?to_?all|permute|send|recv/, 'collective'],
  [/dma|copy|tensor_(?:read|write)|transfer|h2d|d2h/, 'transfer'],
  [/alloc|free|memory|hbm/, 'memory'],
  [/exec|infer|model|^layer/, 'execution'],
  [/submit|queue|schedule|enqueue|post/, 'scheduling'],
  [/error|timeout|fail/, 'error'],
];

export function colourGroup(name: string, category: string): string {
  if (!kRuntimeCategories.has(category)) return category;
  const text = name.slice(0, 200).toLowerCase();
  for (const [pattern, group] of kGroups) {
    if (pattern.test(text)) return group;
  }
  return category === 'neuron_hw' ? 'hardware' : text.split(/[^a-z]/, 1)[0] || 'other';
}

// How many colours of its group a name can have.
export const kTones = 6;

// The runtime's frequent names, which are often on one row, in the order of their tones: within a group no two of the
// first kTones look alike.
const kFrequent = [
  'nc_exec_running',
  'nrt_execute',
  'kbl_exec_pre',
  'kbl_exec_core',
  'kbl_exec_post',
  'kmgr_exec_core',
  'exec_consume_input',
  'nrt_model_submit',
  'nrt_model_switch',
  'nc_model_switch',
  'cc_running',
  'nrt_load_collectives',
  'enc_barrier',
  'cc_exec_barrier',
  'timestamp_sync_point',
  'kbl_exec_wait',
  'nrt_async_sema_wait',
  'tensor_block_while_exec',
  'nrt_tensor_read',
  'nrt_tensor_write',
  'dmem_buf_copyin',
  'dmem_buf_copyout',
  'nrt_tensor_read_batch',
  'nrt_tensor_write_batch',
  'nrt_tensor_allocate',
  'nrt_tensor_free',
  'nrt_dma_mem_alloc',
  'nrt_dma_mem_dealloc',
];

const kToneOf = new Map<string, number>();
{
  const used = new Map<string, number>();
  for (const name of kFrequent) {
    const group = colourGroup(name, 'neuron_rt'), tone = used.get(group) ?? 0;
    kToneOf.set(name, tone % kTones);
    used.set(group, tone + 1);
  }
}

// Which of its group's colours a name has. The same in every view, whatever was loaded first, so that a colleague sees
// the same picture. What follows a blank is an argument, such as a layer's number, unless it is all that differs.
export function toneOf(name: string): number {
  const frequent = kToneOf.get(name) ?? kToneOf.get(name.slice(0, Math.max(0, name.indexOf(' '))));
  if (frequent !== undefined) return frequent;
  let hash = 2166136261;
  for (let i = 0, n = Math.min(200, name.length); i < n; ++i) hash = Math.imul(hash ^ name.charCodeAt(i), 16777619);
  return ((hash ^ hash >>> 15) >>> 0) % kTones;
}
