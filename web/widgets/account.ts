// SPDX-License-Identifier: Apache-2.0
import {Session} from '../api/api_types';

import {button, element} from './dom';

// Who uses the page, with which role, and a button that ends the session, where there is one.
export function accountElement(session: Session, app: {signOut(): void}): HTMLElement {
  const name = [session.user, session.role && `(${session.role})`].filter(text => text).join(' ');
  const style = `faint account-name${session.role ? '' : ' no-role'}`;
  return element(
      'span', {class: 'account'},
      element('span', {class: style, title: `${name}, aggregator ${session.aggregator}`}, name),
      session.has_session === true && button('Sign out', () => app.signOut(), {class: 'plain sign-out'}));
}
