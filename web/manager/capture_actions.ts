// SPDX-License-Identifier: Apache-2.0
import {ApiClient} from '../api/api_client';
import {Session} from '../api/api_types';
import {mayChangeRetention, parseRetention, retentionInput} from '../model/retention';
import {safeText} from '../model/safe_text';
import {MenuItem} from '../widgets/menu';
import {askText} from '../widgets/modal';
import {Toasts} from '../widgets/toasts';

import {CaptureFacts} from './capture_facts';

// What a person may do to a capture. Each action asks where it has to, calls the aggregator and refreshes the list.
export class CaptureActions {
  constructor(
      private readonly api: ApiClient, private readonly toasts: Toasts, private readonly session: Session,
      private readonly list: {refresh(): void}) {}

  items(facts: CaptureFacts): MenuItem[] {
    const {may} = this.session;
    return [
      {label: 'Rename…', action: () => this.rename(facts), disabled: !may.edit},
      {label: 'Tags…', action: () => this.tag(facts), disabled: !may.edit},
      {label: facts.starred ? 'Remove star' : 'Star', action: () => this.star(facts), disabled: !may.edit},
      {label: 'Keep for…', action: () => this.keep(facts), disabled: !may.edit || !mayChangeRetention(facts.retention)},
      {label: 'Copy id', hint: '…' + facts.id.slice(-6), action: () => void this.copyId(facts)},
      {label: 'Stop', action: () => this.stop(facts), disabled: !may.stop || !facts.isLive},
      {
        label: 'Delete…',
        hint: facts.isLive ? 'stop it first' : undefined,
        action: () => this.remove(facts),
        disabled: !may.delete || facts.isLive
      },
    ];
  }

  get mayEdit(): boolean {
    return this.session.may.edit;
  }

  star(facts: CaptureFacts): void {
    void this.run('The star was not changed', this.api.updateCapture(facts.id, {starred: !facts.starred}));
  }

  stop(facts: CaptureFacts): void {
    void this.run('The capture was not stopped', this.api.stopCapture(facts.id), `${facts.title} stops.`);
  }

  keep(facts: CaptureFacts): void {
    const {isContinuous, retentionNs} = facts.retention, before = retentionInput(retentionNs);
    const text = isContinuous ? 'Older events are deleted while it records. Those that have gone do not come back.'
                              : 'The capture is deleted this long after its end. A shorter time needs the role admin.';
    const problemOf = (typed: string): string => {
      const parsed = parseRetention(typed);
      return 'problem' in parsed ? parsed.problem : '';
    };
    askText('How long is it kept?', text, 'Keep for', before, 'Save', null, typed => {
      const parsed = parseRetention(typed);
      if ('problem' in parsed || typed === before) return;
      void this.run(
          'How long the capture is kept was not changed', this.api.updateCapture(facts.id, {retention_ns: parsed.ns}));
    }, problemOf);
  }

  private async copyId(facts: CaptureFacts): Promise<void> {
    try {
      await navigator.clipboard.writeText(facts.id);
      this.toasts.say(`${facts.id} is copied.`);
    } catch {
      this.toasts.say(`The browser does not allow copying. The id is ${facts.id}`);
    }
  }

  private rename(facts: CaptureFacts): void {
    askText('Rename the capture', `Its id, ${facts.id}, stays the same.`, 'Name', facts.name, 'Rename', null, name => {
      if (name === facts.name) return;
      void this.run('The capture was not renamed', this.api.updateCapture(facts.id, {name}));
    });
  }

  private tag(facts: CaptureFacts): void {
    const fixed = facts.labels.length > 0 ? ` Set at the start, and stay: ${facts.labels.join(', ')}.` : '';
    askText(
        'Tags', 'Words separated by commas; the list can be filtered by them.' + fixed, 'Tags', facts.tags.join(', '),
        'Save', null, text => {
          const tags = [...new Set(text.split(',').map(tag => tag.trim()).filter(tag => tag))];
          // Only the difference, so that what somebody else changed meanwhile stays.
          const added = tags.filter(tag => !facts.tags.includes(tag)),
                removed = facts.tags.filter(tag => !tags.includes(tag));
          if (added.length + removed.length === 0) return;
          void this.run(
              'The tags were not changed', this.api.updateCapture(facts.id, {add_tags: added, remove_tags: removed}));
        });
  }

  private remove(facts: CaptureFacts): void {
    // A name with hidden characters cannot be typed as it is shown.
    const typed = facts.name && safeText(facts.name) === facts.name ? facts.name : facts.id;
    askText(
        'Delete the capture',
        `This removes all events of ${facts.title} from the aggregator's store. It cannot be undone. Type ${
            typed} to confirm.`,
        'Name', '', 'Delete', typed,
        confirm => void this.run(
            'The capture was not deleted', this.api.deleteCapture(facts.id, confirm), `${facts.title} is deleted.`));
  }

  private async run(failure: string, call: Promise<void>, success = ''): Promise<void> {
    try {
      await call;
      if (success) this.toasts.say(success);
    } catch (error) {
      this.toasts.fail(failure, error);
    }
    this.list.refresh();
  }
}
