// SPDX-License-Identifier: Apache-2.0
import {coresText, headline, judgedText, suspectsText, toneOf, verdictKind, waitText} from '../model/insight';
import {InsightMessage, RefusalMessage, VerdictMessage} from '../model/insight_types';
import {formatCount, formatUtc} from '../model/text_format';
import {parseInteger} from '../model/time_base';
import {copyLine} from '../widgets/copy_line';
import {element} from '../widgets/dom';
import {Navigation} from '../widgets/navigation';
import {answerNotes, stacksSection, verdictBadge, verdictBody} from '../widgets/verdict_parts';

import {link} from './captures_table';

// Beyond, they are counted: the timeline's panel Why lists more.
const kListed = 10;

// Which ranks were slow or hung in a capture, and how much of it was not judged. Each verdict leads to the timeline.
export function whySection(navigation: Navigation, id: string, report: InsightMessage): HTMLElement {
  const verdicts = report.verdicts ?? [], refusals = report.refusals ?? [];
  const path = (verdict: number): string =>
      `/capture/${encodeURIComponent(id)}?panel=why&why=all${verdict >= 0 ? `&verdict=${verdict}` : ''}`;
  return element(
      'section', {class: 'why-section', 'aria-labelledby': 'why-title'},
      element(
          'h2', {id: 'why-title'}, 'Why ',
          verdicts.length > 0 && element('span', {class: 'tab-badge'}, formatCount(verdicts.length))),
      element('p', {}, element('strong', {}, headline(report)), `: ${judgedText(report)}. ${waitText(report)}`),
      element('p', {}, link(navigation, path(-1), 'Show on the timeline')), answerNotes(report),
      verdicts.length > 0 &&
          element(
              'ol', {class: 'verdicts', 'aria-label': 'Verdicts'},
              ...verdicts.slice(0, kListed).map((verdict, i) => card(navigation, verdict, path(i)))),
      verdicts.length > kListed &&
          element('p', {class: 'faint'}, `${formatCount(verdicts.length - kListed)} more are listed on the timeline.`),
      ...(report.stacks ?? []).map(stacksSection), refusals.length > 0 && refusalList(refusals),
      copyLine(`neurontrace why ${id}`, 'prints the same in a terminal').element);
}

function card(navigation: Navigation, verdict: VerdictMessage, path: string): HTMLElement {
  const kind = verdictKind(verdict), tone = toneOf(kind), since = parseInteger(verdict.sinceNs);
  return element(
      'li', {class: `verdict-card ${tone}`},
      element(
          'div', {class: 'verdict-head'}, verdictBadge(verdict),
          tone !== 'uneven' && element('strong', {}, suspectsText(verdict)),
          element('span', {class: 'faint'}, [verdict.phase, verdict.role].filter(text => text).join(' · ')),
          element('span', {class: 'grow'}), link(navigation, path, 'Timeline')),
      verdictBody(verdict, since > 0n ? `since ${formatUtc(since)} UTC` : ''));
}

function refusalList(refusals: RefusalMessage[]): HTMLElement {
  const text = ({reason, cores, coresTotal, missing}: RefusalMessage): string =>
      `${reason ?? ''}, ${coresText(cores ?? [], coresTotal ?? 0) || 'all ranks'}: ${missing ?? ''}`;
  return element(
      'div', {}, element('h3', {}, `Not judged (${formatCount(refusals.length)})`),
      element('ul', {class: 'sentences'}, ...refusals.slice(0, kListed).map(entry => element('li', {}, text(entry)))),
      refusals.length > kListed &&
          element('p', {class: 'faint'}, `${formatCount(refusals.length - kListed)} more are listed on the timeline.`));
}
