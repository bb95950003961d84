// SPDX-License-Identifier: Apache-2.0
import {costShare, isWhole, ratioText, toneOf, verdictKind} from '../model/insight';
import {InsightMessage, RuledOut, StacksMessage, VerdictMessage} from '../model/insight_types';
import {stackLines, stacksTitle} from '../model/stacks';
import {formatCount, formatDuration, formatUtc} from '../model/text_format';
import {parseCount, parseInteger} from '../model/time_base';

import {copyLine} from './copy_line';
import {element} from './dom';

const kBarPx = 120;

export function verdictBadge(message: VerdictMessage): HTMLElement {
  const kind = verdictKind(message);
  return element('span', {class: `verdict-badge ${toneOf(kind)}`}, kind);
}

// The cost of a verdict as a part of the step: a bar, and the same as text. Null where the report has neither.
export function costBar(message: VerdictMessage): HTMLElement|null {
  const cost = parseCount(message.costNs), step = parseCount(message.stepNs), share = costShare(message);
  if (cost <= 0) return null;
  const text = Number.isNaN(share)
      ? `costs ${formatDuration(cost)} of a step`
      : `costs ${formatDuration(cost)} of a ${formatDuration(step)} step (${Math.round(share * 100)} %)`;
  if (Number.isNaN(share)) return element('span', {class: 'cost'}, text);
  const bar = element('span', {class: 'cost-bar', 'aria-hidden': 'true'}), part = element('span');
  part.style.width = `${Math.max(1, Math.round(share * kBarPx))}px`;
  bar.appendChild(part);
  return element('span', {class: 'cost'}, bar, text);
}

function waitingText({waiting}: VerdictMessage): string {
  return waiting ? `${formatCount(waiting)} ${waiting === 1 ? 'rank waits' : 'ranks wait'} for it` : '';
}

// Other causes, each with the figure that excludes it; null without any.
export function ruledOutTable(ruledOut: RuledOut[]|undefined): HTMLElement|null {
  if (!ruledOut?.length) return null;
  const figureOf = ({ratio, figure}: RuledOut):
      string => [ratio ? ratioText(ratio) : '', figure ?? ''].filter(text => text).join(', ');
  return element(
      'table', {class: 'ruled-out'}, element('caption', {}, 'Ruled out'),
      element(
          'tbody', {},
          ...ruledOut.map(
              entry => element(
                  'tr', {}, element('th', {scope: 'row'}, entry.what ?? ''), element('td', {}, figureOf(entry))))));
}

// What is known about one verdict, below its head: the answer, its figures, and the command that shows it.
export function verdictBody(message: VerdictMessage, when: string): HTMLElement {
  return element(
      'div', {class: 'verdict-body'},
      element(
          'div', {class: 'verdict-main'}, element('p', {class: 'verdict-text'}, message.text ?? ''),
          element(
              'p', {class: 'verdict-facts'}, when && element('span', {}, when), costBar(message),
              element('span', {}, waitingText(message)), element('span', {}, message.annotation ?? '')),
          message.look && copyLine(message.look, '', 'Copy the command').element),
      ruledOutTable(message.ruledOut));
}

// The warnings of an answer: folded where all was judged, because they change nothing of it. Null without any.
export function answerNotes(report: InsightMessage): HTMLElement|null {
  const warnings = report.warnings ?? [];
  if (!warnings.length) return null;
  const list = element('ul', {class: 'sentences'}, ...warnings.map(text => element('li', {}, text)));
  if (!isWhole(report)) return element('div', {class: 'why-warning'}, list);
  return element(
      'details', {class: 'faint'},
      element('summary', {}, warnings.length === 1 ? 'One note' : `${formatCount(warnings.length)} notes`), list);
}

// The merged stacks of some workers: the short answer, and the whole tree on demand. Odd ranks stand out.
export function stacksSection(message: StacksMessage): HTMLElement {
  const {lines, left} = stackLines(message), asked = parseInteger(message.askedRealtimeNs);
  const tree = lines.map(
      line => element(
          'li', {class: line.isMinority ? 'odd' : ''}, element('span', {class: 'stack-count'}, line.members),
          `${'\u00a0'.repeat(2 * line.depth)}${line.text}`, line.isMinority && element('strong', {}, ' odd')));
  return element(
      'section', {class: 'stacks'}, element('h3', {}, stacksTitle(message)),
      element(
          'p', {class: 'faint'},
          [asked > 0n ? `${formatUtc(asked)} UTC` : '', message.reason ?? ''].filter(text => text).join(': ')),
      element('ul', {class: 'sentences'}, ...(message.lines ?? []).map(line => element('li', {}, line))),
      message.problem && element('p', {class: 'why-warning'}, `Not stored: ${message.problem}`),
      tree.length > 0 &&
          element(
              'details', {}, element('summary', {}, 'All stacks, the outermost frame first'),
              element('ul', {class: 'stack-tree'}, ...tree),
              left > 0 && element('p', {class: 'faint'}, `${formatCount(left)} more frames are not shown.`)));
}
