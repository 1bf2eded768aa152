"""What is said of two jobs, in each language.

`{gpus:gpus}` puts a number with its unit, `{reason:reason}` the sentence of a reason; see `UNITS`
in the module of the wording.
"""

from __future__ import annotations

from enum import Enum, unique

from planner.vocabulary import Sentence


@unique
class SayOfTwo(Enum):
    """What is said of two jobs."""

    STARTED = Sentence(
        "{job} started at {at:at} ({clock}) in pool {pool}, attempt {number:n}.",
        "{job}は{at:at}({clock})にプール{pool}で開始しました({number:n}回目の実行)。",
    )
    DISPLACED_OTHERS = Sentence(
        "To start, {job} evicted: {victims:names}.",
        "{job}の開始のために退避されたジョブ: {victims:names}。",
    )
    BY_LANE_RANK = Sentence(
        "{first} is looked at before {second}: lane {lane} has rank {rank:n}, lane "
        "{other_lane} rank {other_rank:n}.",
        "{first}は{second}より先に検討されます。レーンのランクは{lane}が{rank:n}、"
        "{other_lane}が{other_rank:n}です。",
    )
    BY_LANE_PLACE = Sentence(
        "{first} is looked at before {second}: lanes {lane} and {other_lane} have the same "
        "rank {rank:n}, and {lane} stands before {other_lane} in the file.",
        "{first}は{second}より先に検討されます。レーン{lane}と{other_lane}のランクは"
        "ともに{rank:n}で、ファイルでは{lane}が{other_lane}より前にあります。",
    )
    BY_SUBMIT = Sentence(
        "{first} is looked at before {second}: within a project jobs go by their submission, "
        "at {submit:at} and at {other_submit:at}.",
        "{first}は{second}より先に検討されます。プロジェクト内は投入順で、"
        "それぞれ{submit:at}と{other_submit:at}の投入です。",
    )
    BY_PROJECT_SUBMIT = Sentence(
        "{first} is looked at before {second}: projects go by the submission of their first "
        "waiting job, {project} by {head} at {submit:at}, {other_project} by {other_head} at "
        "{other_submit:at}.",
        "{first}は{second}より先に検討されます。プロジェクトは先頭の待機ジョブの投入順で、"
        "{project}は{head}の{submit:at}、{other_project}は{other_head}の{other_submit:at}です。",
    )
    BY_SHARE = Sentence(
        "{first} is looked at before {second}: the project with the smaller dominant share "
        "goes first, {project} has {share:share}, {other_project} {other_share:share}.",
        "{first}は{second}より先に検討されます。ドミナントシェアの小さいプロジェクトが先で、"
        "{project}は{share:share}、{other_project}は{other_share:share}です。",
    )
    BY_SCORE = Sentence(
        "{first} is looked at before {second}: within a project the higher score goes first, "
        "{score:score} against {other_score:score}.",
        "{first}は{second}より先に検討されます。プロジェクト内はスコアの高い順で、"
        "それぞれ{score:score}と{other_score:score}です。",
    )
    BY_PROJECT_SCORE = Sentence(
        "{first} is looked at before {second}: projects go by the score of their first "
        "waiting job, the higher first, {project} by {head} with {score:score}, "
        "{other_project} by {other_head} with {other_score:score}.",
        "{first}は{second}より先に検討されます。プロジェクトは先頭の待機ジョブのスコアの"
        "高い順で、{project}は{head}の{score:score}、"
        "{other_project}は{other_head}の{other_score:score}です。",
    )
    BY_FILE_PLACE = Sentence(
        "{first} is looked at before {second}: all else is equal, and of the two jobs that "
        "were compared {head} stands before {other_head} in the file (rows {row:n} and "
        "{other_row:n}).",
        "{first}は{second}より先に検討されます。ほかの条件は同じで、比較された2つのジョブのうち"
        "ファイルでは{head}が{other_head}より前にあります({row:n}番目と{other_row:n}番目)。",
    )
    SHARE = Sentence(
        "{project} borrowed {borrowed:gpus} in {pool}, where its cohort has {capacity:gpus}; "
        "its weight is {weight:score}, so its dominant share is {share:share}.",
        "{project}は{pool}で{borrowed:gpus}を借用中です(コホートの容量は{capacity:gpus}、"
        "重みは{weight:score})。ドミナントシェアは{share:share}です。",
    )
    SHARE_NONE = Sentence(
        "{project} borrowed nothing, so its dominant share is {share:share}.",
        "{project}は借用していないため、ドミナントシェアは{share:share}です。",
    )
    SCORE = Sentence(
        "Score of {job}: age {age:score} + fair share {fair_share:score} + size {size:score} "
        "+ lane {lane:score} = {score:score}.",
        "{job}のスコア: 待ち時間{age:score} + フェアシェア{fair_share:score} + "
        "規模{size:score} + レーン{lane:score} = {score:score}。",
    )
    OTHER_REFUSED = Sentence(
        "{other} was ahead, but could not start:",
        "{other}のほうが先でしたが、開始できませんでした。",
    )
    OTHER_BEHIND_HEAD = Sentence(
        "{other} was ahead, but was not tried.",
        "{other}のほうが先でしたが、検討されませんでした。",
    )
    OTHER_TURN_OVER = Sentence(
        "{other} was ahead, but its turn in this pass was over when room for it came free; the "
        "next pass looks at it.",
        "{other}のほうが先でしたが、このサイクルで順番が過ぎたあとに空きが出ました。"
        "次のサイクルで検討されます。",
    )
    OTHER_DISPLACED = Sentence(
        "{other} was running since {start:at}; {job} evicted it by {ground:ground} to start, "
        "and {lost:gpu_seconds} of its work were lost.",
        "{other}は{start:at}から実行中でしたが、{job}の{ground:ground}により退避され、"
        "{lost:gpu_seconds}の作業が失われました。",
    )
    OTHER_EVICTED_IN_PASS = Sentence(
        "{other} was evicted in the same pass, and no pass looks again at a job that it has "
        "evicted.",
        "{other}は同じサイクルで退避されたため、そのサイクルでは再び検討されませんでした。",
    )
    OTHER_BACKS_OFF = Sentence(
        "{other} was not in the queue: its back-off lasted until {until:at}.",
        "{other}は退避後の待機時間中({until:at}まで)で、キューにいませんでした。",
    )
    OTHER_NOT_SUBMITTED = Sentence(
        "{other} was not there yet: it is submitted at {submit:at}.",
        "{other}はまだ投入されていませんでした(投入は{submit:at})。",
    )
    OTHER_FITTED = Sentence(
        "At that moment {other} fitted, too, in: {pools:names}. The order alone decided.",
        "その時点で{other}も次のプールに収まる状態でした: {pools:names}。順序だけで決まりました。",
    )
    OTHER_FITTED_NOT = Sentence(
        "At that moment {other} did not fit anyway:",
        "そもそも{other}は、その時点では収まりませんでした。",
    )
    NEITHER_STARTED = Sentence(
        "Neither {job} nor {other} had started by {at:at} ({clock}).",
        "{at:at}({clock})の時点で、{job}も{other}も開始していません。",
    )
    REVERSE = Sentence(
        "It was the other way round: {other} had started at {other_start:at}, before {job} "
        "did at {at:at}.",
        "順序は逆です。{other}は{other_start:at}に開始しており、{job}の開始({at:at})より前です。",
    )
    REVERSE_NOT_STARTED = Sentence(
        "It was the other way round: {other} had started at {other_start:at}, and {job} had "
        "not started by {at:at}.",
        "順序は逆です。{other}は{other_start:at}に開始していますが、"
        "{job}は{at:at}の時点で開始していません。",
    )
