// SPDX-License-Identifier: Apache-2.0
import {StackNode, StacksMessage} from './insight_types';
import {formatCount} from './text_format';

// Lines of the tree that are shown; further ones are counted.
const kLinesShown = 400;
const kIndentMax = 40;

// One line of the merged stacks, as the page shows it.
export interface StackLine {
  depth: number;
  text: string;
  isMinority: boolean;
  members: string;  // "3 of 4"
}

// "4 workers of llama, 1 has not answered yet".
export function stacksTitle(report: StacksMessage): string {
  const members = report.members?.length ?? 0, pending = report.pending ?? 0;
  const texts = [`Stacks of ${formatCount(members)} ${members === 1 ? 'worker' : 'workers'}`];
  if (report.job) texts.push(`of ${report.job}`);
  const waits = pending === 1 ? 'has' : 'have';
  return texts.join(' ') + (pending > 0 ? `, ${formatCount(pending)} ${waits} not answered yet` : '');
}

function frameText({function: name, file}: StackNode): string {
  if (!name) return '(ends here)';
  return file ? `${name} (${file})` : name;
}

// The tree, the outermost frames first, and how many lines of it are not shown.
export function stackLines(report: StacksMessage): {lines: StackLine[], left: number} {
  const nodes = report.nodes ?? [], all = report.members?.length ?? 0;
  const lines = nodes.slice(0, kLinesShown).map(node => ({
                                                  depth: Math.min(kIndentMax, node.depth ?? 0),
                                                  text: frameText(node),
                                                  isMinority: node.isMinority ?? false,
                                                  members: `${node.members?.length ?? 0} of ${all}`
                                                }));
  return {lines, left: nodes.length - lines.length + Number(report.nodesLeftOut ?? '0')};
}
