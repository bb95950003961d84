// SPDX-License-Identifier: Apache-2.0
// What a span is coloured by. The runtime's two categories hold everything from an execution to a DMA, so that their
// spans are told apart by name; any other category is a group by itself.

const kRuntimeCategories = new Set(['neuron_rt', 'neuron_hw']);
const kGroups: [RegExp, string][] = [
  [/barrier|semaphore|sync|wait/, 'barrier'],
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
