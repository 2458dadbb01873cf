export function BenchView({ report }: { report?: string }) { return <p>{report}</p>; }
