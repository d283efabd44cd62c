import { ICONS, type IconName } from './icons';
import styles from './shell.module.css';

/** An icon in the colour of the text beside it. Hidden from screen readers, because that text has the same meaning. */
export const Icon = ({ name }: { name: IconName }) => (
  <svg viewBox="0 0 24 24" className={styles.icon} aria-hidden>
    <path d={ICONS[name]} />
  </svg>
);
