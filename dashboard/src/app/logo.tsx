import styles from "./logo.module.css";

export function Logo() {
  return (
    <span className={styles.logo}>
      <svg width="20" height="20" viewBox="0 0 32 32" aria-hidden="true">
        <rect width="32" height="32" rx="8" className={styles.ground} />
        <path
          d="M8 10h16v4h-7.200c0 2.600 1.400 4.200 3.700 5v4h-9v-4c1.600-.700 2.400-2.100 2.400-4H12c-2.400 0-4-1.900-4-5z"
          className={styles.anvil}
        />
      </svg>
      Forge
    </span>
  );
}
