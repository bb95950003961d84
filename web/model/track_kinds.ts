// SPDX-License-Identifier: Apache-2.0
// What kinds of rows a rank has, and by what ranks and rows are grouped.

// Sections of a rank, in the order of display.
export const kSectionNames: readonly[string, string][] = [
  ['runtime', 'Runtime threads'],
  ['hardware', 'Hardware'],
  ['framework', 'Framework'],
  ['annotation', 'Annotations'],
  ['steps', 'Steps'],
  ['transfers', 'Transfers'],
  ['counters', 'Counters'],
];

export function sectionOf(source: string, name: string): string {
  if (source === 'counter') return 'counters';
  if (/\bsteps?\b/i.test(name)) return 'steps';
  if (/host to device|device to host|\btransfers?\b|\bdma\b/i.test(name)) return 'transfers';
  return source === 'framework' || source === 'annotation' || source === 'hardware' ? source : 'runtime';
}

export function sectionLabel(section: string): string {
  return kSectionNames.find(([name]) => name === section)?.[1] ?? section;
}

// The part of a row's name that is the same on all ranks: without rank, core, thread and lane. Rows are named as in a
// Perfetto trace: "gid13-nc5-tid7-neuron_rt (lane 2)".
export function commonRowName(name: string): string {
  const common = name.replace(/^gid\d+-/, '')
                     .replace(/^nc\d+[- ]/, '')
                     .replace(/^tid\d+-/, '')
                     .replace(/^core\d+-/, '')
                     .replace(/ \(lane \d+\)$/, '')
                     .replace(/^(thread|CPU) \d+$/, '$1');
  return common || name;
}

// A row's name below its rank's line.
export function ownRowName(name: string): string {
  return name.replace(/^gid\d+-nc\d+[- ]/, '');
}

// By what lines are put together; in brackets the vendor's Explorer's name for it.
export const kGroupings = [
  ['instance', 'Instance, process, rank', 'the default'],
  ['rank', 'Rank', 'one list, in the order of ranks'],
  ['process', 'Process', 'each process with its ranks'],
  ['job', 'Job', 'each job with its ranks'],
  ['core', 'NeuronCore', 'core 0 of all instances, core 1, …'],
  ['kind', 'CPU and device', 'runtime, hardware, … rows of all ranks'],
  ['name', 'Row name', 'rows of one name across all ranks'],
] as const;

export type Grouping = typeof kGroupings[number][0];

export function isGrouping(text: string): text is Grouping {
  return kGroupings.some(([name]) => name === text);
}
