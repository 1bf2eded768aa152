"""What is said of one job, in each language.

`{gpus:gpus}` puts a number with its unit, `{reason:reason}` the sentence of a reason; see `UNITS`
in the module of the wording.
"""

from __future__ import annotations

from enum import Enum, unique

from planner.vocabulary import Sentence


@unique
class Say(Enum):
    """What is said of one job."""

    # How a job stands at a second
    WAITS = Sentence(
        "{job} waited at {at:at} ({clock}), since {since:at}. {reason}: {reason:reason}",
        "{job}は{at:at}({clock})の時点で待機中でした({since:at}から)。{reason}: {reason:reason}",
    )
    RUNS = Sentence(
        "{job} was running at {at:at} ({clock}): in pool {pool} since {start:at}, "
        "attempt {number:n}.",
        "{job}は{at:at}({clock})の時点で実行中でした"
        "(プール{pool}、{start:at}から、{number:n}回目の実行)。",
    )
    HAS_FINISHED = Sentence(
        "{job} had finished by {at:at} ({clock}): at {end:at}, in pool {pool}.",
        "{job}は{at:at}({clock})の時点で完了していました(プール{pool}、{end:at}に完了)。",
    )
    WAS_CANCELLED = Sentence(
        "{job} had been cancelled by {at:at} ({clock}): at {end:at}.",
        "{job}は{at:at}({clock})の時点で取り消されていました({end:at}に取り消し)。",
    )
    CANNOT_RUN = Sentence(
        "{job} can never run. {reason}: {reason:reason}",
        "{job}は実行できません。{reason}: {reason:reason}",
    )
    NOT_SUBMITTED = Sentence(
        "{job} had not been submitted by {at:at} ({clock}); that is at {submit:at}.",
        "{job}は{at:at}({clock})の時点ではまだ投入されていません(投入は{submit:at})。",
    )
    ASKS = Sentence(
        "It asks for {gpus:gpus}, for project {project} in lane {lane}; submitted at {submit:at}.",
        "プロジェクト{project}、レーン{lane}で{gpus:gpus}を要求しています(投入は{submit:at})。",
    )
    HAS_WAITED = Sentence(
        "Until then it had waited {waited:seconds} in all.",
        "この時点までの待ち時間は合計{waited:seconds}です。",
    )
    # The first check that fails in a pool
    CHECK_LANE = Sentence(
        "{pool}: with {gpus:gpus} more the project would hold {then:gpus} in lane {lane}, "
        "where its limit is {limit:gpus}.",
        "{pool}: さらに{gpus:gpus}を使うと、レーン{lane}でのプロジェクトの使用は{then:gpus}となり、"
        "上限の{limit:gpus}を超えます。",
    )
    CHECK_BORROWING = Sentence(
        "{pool}: with {gpus:gpus} more the project would hold {then:gpus}; its nominal quota "
        "and its borrowing limit allow {ceiling:gpus}.",
        "{pool}: さらに{gpus:gpus}を使うとプロジェクトの使用は{then:gpus}となり、"
        "公称クォータと借用上限を合わせた{ceiling:gpus}を超えます。",
    )
    CHECK_QUOTA = Sentence(
        "{pool}: the job asks for {gpus:gpus}, and quota leaves its project {available:gpus}.",
        "{pool}: 要求は{gpus:gpus}ですが、プロジェクトがクォータで使えるのは"
        "あと{available:gpus}です。",
    )
    CHECK_CAPACITY = Sentence(
        "{pool}: the job asks for {gpus:gpus}, and {free:n} of {total:gpus} were free.",
        "{pool}: 要求は{gpus:gpus}ですが、空きは{total:gpus}のうち{free:n}基です。",
    )
    CHECK_ONE_NODE = Sentence(
        "{pool}: {free:gpus} were free in sum, but no more than {most:gpus} on any one node; "
        "the job needs {rest:gpus} on one node.",
        "{pool}: 空きは合計{free:gpus}ですが、1ノードの空きは最大で{most:gpus}です。"
        "ジョブには1ノードに{rest:gpus}の空きが必要です。",
    )
    CHECK_WHOLE_NODES = Sentence(
        "{pool}: {free:gpus} were free in sum, but only {free_nodes:nodes} wholly; the job "
        "needs {whole:nodes} wholly free.",
        "{pool}: 空きは合計{free:gpus}ですが、丸ごと空いているのは{free_nodes:nodes}です。"
        "ジョブには丸ごと空いた{whole:nodes}が必要です。",
    )
    CHECK_NODES_AND_REST = Sentence(
        "{pool}: {free:gpus} were free in sum, but only {free_nodes:nodes} wholly, and no more "
        "than {most:gpus} on any other; the job needs {whole:nodes} wholly free and "
        "{rest:gpus} on one other.",
        "{pool}: 空きは合計{free:gpus}ですが、丸ごと空いているのは{free_nodes:nodes}、"
        "それ以外の1ノードの空きは最大で{most:gpus}です。"
        "ジョブには丸ごと空いた{whole:nodes}と、別の1ノードに{rest:gpus}の空きが必要です。",
    )
    CHECK_RESERVED = Sentence(
        "{pool}: the job would fit, but from {reserved:at} on the pool is reserved for "
        "{holder} ({holder_gpus:gpus}), which leaves {spare:gpus}; by its limit the job would "
        "end at {ends:at}.",
        "{pool}: 空きには収まりますが、{reserved:at}から{holder}({holder_gpus:gpus})のために"
        "予約されており、予約後の余りは{spare:gpus}です。"
        "このジョブの終了は、制限時間によれば{ends:at}になります。",
    )
    CHECK_OUTAGE = Sentence(
        "{pool}: in an outage from {start:at} until {until:at}.",
        "{pool}: {start:at}から{until:at}まで停止中です。",
    )
    CHECK_FITS = Sentence(
        "{pool}: the job fitted. It asks for {gpus:gpus}; {free:n} of {total:gpus} were free, "
        "and quota left its project {available:gpus}.",
        "{pool}: ジョブは収まる状態でした。要求は{gpus:gpus}、空きは{total:gpus}のうち{free:n}基、"
        "プロジェクトがクォータで使えるのは{available:gpus}でした。",
    )
    # The numbers behind it
    QUOTA = Sentence(
        "Quota of {project} in {pool}, in GPUs: nominal {nominal:n}, guaranteed "
        "{guaranteed:n}, usage {usage:n}, borrowed {borrowed:n}, borrowing limit "
        "{borrowing_limit:limit}; cohort {cohort}: {cohort_use:n} of {cohort_capacity:n} in "
        "use; available {available:n}.",
        "{pool}での{project}のクォータ(GPU数): 公称{nominal:n}、保証{guaranteed:n}、"
        "使用中{usage:n}、借用{borrowed:n}、借用上限{borrowing_limit:limit}。"
        "コホート{cohort}: 容量{cohort_capacity:n}のうち{cohort_use:n}を使用中。"
        "利用可能{available:n}。",
    )
    FREE = Sentence(
        "Free in {pool}: {free:n} of {total:gpus}, {free_nodes:n} of {nodes:nodes} wholly.",
        "{pool}の空き: {total:gpus}のうち{free:n}基、{nodes:nodes}のうち"
        "丸ごと空いているのは{free_nodes:n}。",
    )
    HELD = Sentence(
        "Held in {pool}: {holders:items}.",
        "{pool}の使用中: {holders:items}。",
    )
    HELD_AND_MORE = Sentence(
        "Held in {pool}: {holders:items}; and by {more:n} more, together {gpus:gpus}.",
        "{pool}の使用中: {holders:items}、ほか{more:n}組が合計{gpus:gpus}。",
    )
    HOLDER = Sentence(
        "{project} in {lane} {gpus:gpus} ({jobs:jobs}, since {since:at})",
        "{project}/{lane} {gpus:gpus}(ジョブ{jobs:jobs}、{since:at}から)",
    )
    LANE = Sentence(
        "Project {project} held {use:gpus} in lane {lane}, where its limit is {limit:gpus}.",
        "レーン{lane}でのプロジェクト{project}の使用は{use:gpus}、上限は{limit:gpus}です。",
    )
    RESERVED_FOR_IT = Sentence(
        "{pool} is reserved for it from {reserved:at} on.",
        "{pool}は{reserved:at}からこのジョブのために予約されています。",
    )
    RESERVED_FOR_OTHER = Sentence(
        "{pool} is reserved for {holder} ({holder_gpus:gpus}) from {reserved:at} on, "
        "which leaves {spare:gpus}.",
        "{pool}は{reserved:at}から{holder}({holder_gpus:gpus})のために予約されており、"
        "予約後の余りは{spare:gpus}です。",
    )
    # Why nobody was displaced
    NOBODY_TO_DISPLACE = Sentence(
        "Nobody was displaced in {pool}: nothing runs there in a lane that {lane} preempts "
        "({preempts:items}), and nothing borrowed can be reclaimed (reclaim: {reclaim}).",
        "{pool}で退避されたジョブはありません。レーン{lane}がプリエンプションできるレーン"
        "({preempts:items})のジョブも、回収できる借用分(reclaim: {reclaim})もありませんでした。",
    )
    WOULD_BORROW = Sentence(
        "Nobody was displaced in {pool}: with {gpus:gpus} more project {project} would hold "
        "{then:gpus} of {nominal:n} nominal, and borrowed GPUs displace no other project's jobs.",
        "{pool}で退避されたジョブはありません。さらに{gpus:gpus}を使うとプロジェクト{project}の使用は"
        "{then:gpus}となって公称{nominal:n}を超え、借用で他のプロジェクトのジョブは退避できません。",
    )
    ALL_PROTECTED = Sentence(
        "Nobody was displaced in {pool}: in the latest pass, at {passed:at}, those that it may "
        "displace ({jobs:jobs}, {displaceable:gpus}) were protected, the first of them until "
        "{until:at}; the next pass after that looks again.",
        "{pool}で退避されたジョブはありません。直近の{passed:at}のスケジューリングサイクルでは、"
        "退避できるジョブ({jobs:jobs}、{displaceable:gpus})はすべて保護期間中でした"
        "(最初に終わる保護は{until:at}まで)。その後のサイクルで再び検討されます。",
    )
    TOO_FEW_TO_DISPLACE = Sentence(
        "Nobody was displaced in {pool}: those that it may displace ({jobs:jobs}, "
        "{displaceable:gpus}; reclaimed ones only as long as their project borrows) would not "
        "make enough room.",
        "{pool}で退避されたジョブはありません。退避できるジョブ({jobs:jobs}、{displaceable:gpus}。"
        "回収は相手が借用している範囲まで)では足りません。",
    )
    TOO_FEW_UNPROTECTED = Sentence(
        "Nobody was displaced in {pool}: in the latest pass, at {passed:at}, those that it may "
        "displace ({jobs:jobs}, {displaceable:gpus}; reclaimed ones only as long as their project "
        "borrows), less {protected:jobs} still protected, would not have made enough room; the "
        "first protection ends at {until:at}, and the next pass after that looks again.",
        "{pool}で退避されたジョブはありません。直近の{passed:at}のスケジューリングサイクルでは、"
        "退避できるジョブ({jobs:jobs}、{displaceable:gpus}。回収は相手が借用している範囲まで)のうち"
        "{protected:jobs}は保護期間中で(最初に終わる保護は{until:at}まで)、残りでは足りませんでした。"
        "その後のサイクルで再び検討されます。",
    )
    # Why it is not looked at
    BEHIND_HEAD = Sentence(
        "Lane {lane} is a strict queue: of project {project} only the first job, {head}, is "
        "tried, and it waits. {reason}: {reason:reason}",
        "レーン{lane}は厳密な順序のキュー(strict)で、プロジェクト{project}の先頭のジョブ{head}"
        "だけが検討され、それが待機中です。{reason}: {reason:reason}",
    )
    EVICTED_IN_PASS = Sentence(
        "The pass at {passed:at} evicted it, and no pass looks again at a job that it has "
        "evicted; the next pass does.",
        "{passed:at}のスケジューリングサイクルで退避されました。同じサイクルでは再び検討されず、次のサイクルで検討されます。",
    )
    TURN_OVER = Sentence(
        "It fits, but the GPUs came free after its turn in the pass at {passed:at}; the next "
        "pass looks at it.",
        "現在は収まりますが、{passed:at}のスケジューリングサイクルで順番が過ぎたあとに空きが出ました。"
        "次のサイクルで検討されます。",
    )
    BACKS_OFF = Sentence(
        "After {evictions:evictions} its back-off lasts until {until:at}.",
        "これまでの{evictions:evictions}により、再びキューに入るのは{until:at}です。",
    )
    EVICTED_BY = Sentence(
        "{by} (project {project}, lane {lane}) evicted it from {pool} at {at:at} by "
        "{ground:ground}; {lost:gpu_seconds} of work were lost.",
        "{at:at}に{by}(プロジェクト{project}、レーン{lane})の{ground:ground}により"
        "{pool}から退避され、{lost:gpu_seconds}の作業が失われました。",
    )
    EVICTED_BY_OUTAGE = Sentence(
        "An outage evicted it from {pool} at {at:at}; {lost:gpu_seconds} of work were lost.",
        "{at:at}に{pool}の停止により退避され、{lost:gpu_seconds}の作業が失われました。",
    )
    # Why it can never run
    LANES_ASSIGNED = Sentence(
        "It was sent to lane {lane}; lanes assigned to project {project}: {lanes:names}.",
        "投入先はレーン{lane}、プロジェクト{project}に割り当てられたレーン: {lanes:names}。",
    )
    POOLS_WITH_QUOTA = Sentence(
        "Pools in which project {project} has quota: {quota_pools:names}; pools that the job "
        "and its lane allow: {allowed_pools:names}.",
        "プロジェクト{project}のクォータがあるプール: {quota_pools:names}。"
        "ジョブとレーンの割り当てが許すプール: {allowed_pools:names}。",
    )
    ACCELERATORS_LEFT = Sentence(
        "It asks for {accelerator}; open to it otherwise: {offers:items}.",
        "要求は{accelerator}、それ以外の条件を満たすプール: {offers:items}。",
    )
    REGIONS_LEFT = Sentence(
        "Regions in which its data may be: {regions:names}; open to it otherwise: {offers:items}.",
        "データを置けるリージョン: {regions:names}。それ以外の条件を満たすプール: {offers:items}。",
    )
    NOT_LINKED = Sentence(
        "Its data are in {region}, from where no link leads to: {offers:items}.",
        "データは{region}にあり、次のプールへの回線がありません: {offers:items}。",
    )
    SIZES_LEFT = Sentence(
        "It asks for {gpus:gpus}; open to it otherwise: {offers:items}.",
        "要求は{gpus:gpus}、それ以外の条件を満たすプール: {offers:items}。",
    )
    MOST_LEFT = Sentence(
        "It asks for {gpus:gpus}; the most that project {project} could ever hold: "
        "{offers:items}; its limit in lane {lane}: {limit:limit}.",
        "要求は{gpus:gpus}、プロジェクト{project}が持ちうる最大: {offers:items}。"
        "レーン{lane}での上限: {limit:limit}。",
    )
    OFFER = Sentence("{pool} ({trait})", "{pool}({trait})")
    OFFER_GPUS = Sentence("{pool} ({gpus:gpus})", "{pool}({gpus:gpus})")
    # A whole life
    WAITED = Sentence(
        "It waited {total:seconds} in all:",
        "待ち時間は合計{total:seconds}で、内訳は次のとおりです。",
    )
    NEVER_WAITED = Sentence("It never waited.", "待ち時間はありませんでした。")
    WAITED_FOR = Sentence(
        "{seconds:seconds} {reason}: {reason:reason}",
        "{seconds:seconds} {reason}: {reason:reason}",
    )
    SPELL = Sentence(
        "{seconds:seconds} from {start:at} to {end:at}, {reason}. When this began:",
        "{start:at}から{end:at}までの{seconds:seconds}、{reason}。開始時の状況:",
    )
    MORE_SPELLS = Sentence(
        "Shorter spells that are not shown: {spells:n}, together {seconds:seconds}.",
        "これより短い待ちが、ほかに{spells:n}回、合計{seconds:seconds}あります。",
    )
    ATTEMPT_FINISHED = Sentence(
        "Attempt {number:n}: in {pool} from {start:at} to {end:at}, where it finished.",
        "{number:n}回目の実行: {pool}で{start:at}から{end:at}まで。完了しました。",
    )
    ATTEMPT_RUNNING = Sentence(
        "Attempt {number:n}: in {pool} since {start:at}, still running.",
        "{number:n}回目の実行: {pool}で{start:at}から実行中です。",
    )
    ATTEMPT_EVICTED = Sentence(
        "Attempt {number:n}: in {pool} from {start:at} to {end:at}, when {by} (project "
        "{project}, lane {lane}) evicted it by {ground:ground}; {lost:gpu_seconds} of work "
        "were lost.",
        "{number:n}回目の実行: {pool}で{start:at}から{end:at}まで。{by}"
        "(プロジェクト{project}、レーン{lane})の{ground:ground}により退避され、"
        "{lost:gpu_seconds}の作業が失われました。",
    )
    ATTEMPT_OUTAGE = Sentence(
        "Attempt {number:n}: in {pool} from {start:at} to {end:at}, when an outage evicted "
        "it; {lost:gpu_seconds} of work were lost.",
        "{number:n}回目の実行: {pool}で{start:at}から{end:at}まで。停止により退避され、"
        "{lost:gpu_seconds}の作業が失われました。",
    )
